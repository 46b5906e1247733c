//! A new object from expressions: the setting `fields` of transforms that write one.

use crate::config::{self, Config, refuse};
use crate::expr::{Expr, Program, Row, Type};
use crate::json;
use crate::scan;
use wasmill::{Kind, Result};

/// The members of the new object in their order.
pub struct Fields {
    /// Each with its name as JSON text, a comma before it, and a colon after it.
    members: Vec<(Vec<u8>, Expr)>,
}

impl Fields {
    /// Reads a list of which each element is `{name: expression}`, or a pointer, whose last token is then the name. `None`
    /// when the setting is not there.
    ///
    /// # Errors
    /// It is something else, has no elements, or a name twice.
    pub fn read(c: &mut Config<'_>, name: &str, program: &mut Program) -> Result<Option<Fields>> {
        let place = c.place(name);
        let list = c.list(name)?;
        if list.is_empty() {
            return if c.value(name).is_none() { Ok(None) } else { Err(refuse(format!("{place} is empty"))) };
        }
        let (mut members, mut names) = (Vec::new(), Vec::<String>::new());
        for (i, element) in list.into_iter().enumerate() {
            let (name, text) = member(element, &format!("{place}[{i}]"))?;
            if names.contains(&name) {
                return Err(refuse(format!("{place} has {name} twice")));
            }
            let expr = program.compile(&format!("{place}.{name}"), &text, Type::Any)?;
            let mut before = if i == 0 { b"{".to_vec() } else { b",".to_vec() };
            json::string(&mut before, name.as_bytes());
            before.push(b':');
            members.push((before, expr));
            names.push(name);
        }
        Ok(Some(Fields { members }))
    }

    /// Appends the object.
    ///
    /// # Errors
    /// The record has a value that an expression cannot take.
    #[inline]
    pub fn write(&self, row: &mut Row<'_>, to: &mut Vec<u8>) -> Result {
        for (before, expr) in &self.members {
            to.extend_from_slice(before);
            row.write(*expr, to)?;
        }
        to.push(b'}');
        Ok(())
    }
}

/// Name and expression of one element.
fn member(element: scan::Found<'_>, place: &str) -> Result<(String, String)> {
    if let Some(text) = config::string(element) {
        // left/price is a pointer, too.
        let pointer = text.find('/').map(|at| &text[at..]);
        let tokens = pointer.filter(|_| text.bytes().take_while(|c| *c != b'/').all(|c| c.is_ascii_alphanumeric() || c == b'_'));
        let last = tokens.and_then(|p| scan::tokens(p).ok()).and_then(|mut t| t.pop());
        return match last {
            Some(name) if !name.contains(|c: char| c.is_whitespace() || "(),=<>!+*%|'\"".contains(c)) => Ok((name, text)),
            _ => Err(refuse(format!("{place} needs a name: write {{name: expression}}"))),
        };
    }
    let mut members = scan::members(if element.kind == Kind::Object { element.raw } else { b"{}" });
    match (members.next(), members.next()) {
        (Some((name, _, value)), None) => {
            let mut plain = Vec::new();
            json::unescape(name, &mut plain);
            let name = String::from_utf8_lossy(&plain).into_owned();
            let text = config::string(value).ok_or_else(|| refuse(format!("{place}.{name} is not a string with an expression")))?;
            Ok((name, text))
        }
        _ => Err(refuse(format!("{place} is neither a pointer nor one {{name: expression}}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Work;
    use wasmill::Value;

    fn write(config: &str, record: &str) -> String {
        let mut program = Program::new();
        let mut c = Config::new(Value::parse(config.as_bytes())).unwrap();
        let fields = match Fields::read(&mut c, "fields", &mut program) {
            Ok(Some(f)) => f,
            Ok(None) => return "none".into(),
            Err(e) => return e.reason().into(),
        };
        let (mut work, mut to) = (Work::default(), Vec::new());
        fields.write(&mut program.rows(&mut work, [Some(record.as_bytes()), None], Default::default()), &mut to).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn writes_members_in_order() {
        let got = write(r#"{"fields":["/b",{"a":"/a + 1"},"/c/x~1y",{"q\"":"'s'"}]}"#, r#"{"a":1,"b":"\u00e9","c":{"x/y":[1, 2]}}"#);
        assert_eq!(got, r#"{"b":"\u00e9","a":2,"x/y":[1, 2],"q\"":"s"}"#);
        assert_eq!(write("{}", "{}"), "none");
    }

    #[test]
    fn refuses_what_is_no_list_of_members() {
        for (config, want) in [
            (r#"{"fields":[]}"#, "config: fields is empty"),
            (r#"{"fields":"/a"}"#, "config: fields is not a list"),
            (r#"{"fields":["/a + 1"]}"#, "config: fields[0] needs a name: write {name: expression}"),
            (r#"{"fields":["lower(/a)"]}"#, "config: fields[0] needs a name: write {name: expression}"),
            (r#"{"fields":["/a",{"a":"/b"}]}"#, "config: fields has a twice"),
            (r#"{"fields":[{"a":"/b","c":"/d"}]}"#, "config: fields[0] is neither a pointer nor one {name: expression}"),
            (r#"{"fields":[{"a":5}]}"#, "config: fields[0].a is not a string with an expression"),
            (r#"{"fields":[{"a":"/b +"}]}"#, "config: fields.a, column 5: the text ends, where a value was expected"),
        ] {
            assert_eq!(write(config, "{}"), want, "{config}");
        }
    }
}
