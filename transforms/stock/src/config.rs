//! Reads a transform's configuration strictly: what has the wrong type, or a name that nobody asked for, refuses the job.

use crate::json;
use crate::scan::{self, Found};
use crate::time;
use wasmill::{Kind, Reject, Result, Value, dead_letter};

/// A refusal of the configuration.
pub fn refuse(reason: impl AsRef<str>) -> Reject {
    dead_letter(1, format!("config: {}", reason.as_ref()))
}

/// One object of a configuration.
pub struct Config<'a> {
    place: String,
    members: Vec<(String, Found<'a>, bool)>,
}

impl<'a> Config<'a> {
    /// The whole configuration, as a transform is given it.
    ///
    /// # Errors
    /// It is no object.
    pub fn new(config: Value<'a>) -> Result<Config<'a>> {
        Config::of(scan::whole(config.raw()), String::new())
    }

    /// An object inside of it; `place` is how errors name it.
    ///
    /// # Errors
    /// It is no object.
    pub fn of(found: Found<'a>, place: String) -> Result<Config<'a>> {
        if found.kind != Kind::Object {
            return Err(refuse(format!("{} is not an object", named(&place))));
        }
        let members = scan::members(found.raw).map(|(name, _, v)| (text(name), v, false)).collect();
        Ok(Config { place, members })
    }

    /// How errors name a member.
    pub fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.into() } else { format!("{}.{name}", self.place) }
    }

    fn wrong(&self, name: &str, wanted: &str) -> Reject {
        refuse(format!("{} is not {wanted}", self.place(name)))
    }

    /// A member as it is; `None` when it is not there or null.
    pub fn value(&mut self, name: &str) -> Option<Found<'a>> {
        let member = self.members.iter_mut().find(|m| m.0 == name)?;
        member.2 = true;
        Some(member.1).filter(|v| !v.is_null())
    }

    /// A string.
    ///
    /// # Errors
    /// It is something else.
    pub fn string(&mut self, name: &str) -> Result<Option<String>> {
        match self.value(name) {
            None => Ok(None),
            Some(v) => string(v).map(Some).ok_or_else(|| self.wrong(name, "a string")),
        }
    }

    /// A string that must be there.
    ///
    /// # Errors
    /// It is not, or something else is.
    pub fn required(&mut self, name: &str) -> Result<String> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    /// That a member is missing.
    pub fn missing(&self, name: &str) -> Reject {
        refuse(format!("{} is missing", self.place(name)))
    }

    /// One of several words; the first when it is not there.
    ///
    /// # Errors
    /// It is something else.
    pub fn choice(&mut self, name: &str, words: &[&'static str]) -> Result<&'static str> {
        let Some(word) = self.string(name)? else {
            return Ok(words[0]);
        };
        let known = words.iter().find(|w| **w == word).copied();
        known.ok_or_else(|| refuse(format!("{} is {word:?}, not one of {}", self.place(name), words.join(", "))))
    }

    /// true or false; false when it is not there.
    ///
    /// # Errors
    /// It is something else.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        match self.value(name).map(|v| v.kind) {
            None | Some(Kind::False) => Ok(false),
            Some(Kind::True) => Ok(true),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// An integer between two bounds.
    ///
    /// # Errors
    /// It is something else.
    pub fn int(&mut self, name: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let Some(v) = self.value(name) else {
            return Ok(None);
        };
        let n = wasmill::parse_int(v.raw).filter(|n| v.kind == Kind::Number && (least..=most).contains(n));
        n.map(Some).ok_or_else(|| self.wrong(name, &format!("an integer from {least} to {most}")))
    }

    /// A duration in milliseconds, written as `10s`.
    ///
    /// # Errors
    /// It is something else.
    pub fn duration(&mut self, name: &str) -> Result<Option<i64>> {
        let Some(v) = self.value(name) else {
            return Ok(None);
        };
        let ms = string(v).and_then(|s| time::duration(&s));
        ms.map(Some).ok_or_else(|| self.wrong(name, "a duration such as 500ms, 10s, 15m, 2h or 1d"))
    }

    /// An object.
    ///
    /// # Errors
    /// It is something else.
    pub fn object(&mut self, name: &str) -> Result<Option<Config<'a>>> {
        let place = self.place(name);
        self.value(name).map(|v| Config::of(v, place)).transpose()
    }

    /// The elements of a list; none when it is not there.
    ///
    /// # Errors
    /// It is no list.
    pub fn list(&mut self, name: &str) -> Result<Vec<Found<'a>>> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(v) => elements(v).ok_or_else(|| self.wrong(name, "a list")),
        }
    }

    /// A list of strings, or one string for a list of one.
    ///
    /// # Errors
    /// It is something else.
    pub fn strings(&mut self, name: &str) -> Result<Vec<String>> {
        let found = match self.value(name) {
            None => return Ok(Vec::new()),
            Some(v) if v.kind == Kind::Array => elements(v).unwrap_or_default(),
            Some(v) => vec![v],
        };
        let strings: Option<Vec<String>> = found.into_iter().map(string).collect();
        strings.ok_or_else(|| self.wrong(name, "a list of strings"))
    }

    /// The names and values that are left, in the order of the text (which the host sorts by name).
    pub fn rest(&mut self) -> Vec<(String, Found<'a>)> {
        let left = self.members.iter_mut().filter(|m| !m.2);
        left.map(|m| {
            m.2 = true;
            (m.0.clone(), m.1)
        })
        .collect()
    }

    /// Ends reading.
    ///
    /// # Errors
    /// There are names that nobody asked for.
    pub fn finish(self) -> Result {
        match self.members.iter().find(|m| !m.2) {
            None => Ok(()),
            Some(m) => Err(refuse(format!("{} is no setting of this transform", self.place(&m.0)))),
        }
    }
}

fn named(place: &str) -> &str {
    if place.is_empty() { "it" } else { place }
}

fn text(raw: &[u8]) -> String {
    let mut plain = Vec::new();
    json::unescape(raw, &mut plain);
    String::from_utf8_lossy(&plain).into_owned()
}

/// The characters of a string.
pub fn string(v: Found<'_>) -> Option<String> {
    matches!(v.kind, Kind::String | Kind::Escaped).then(|| text(v.raw))
}

/// The elements of a list.
pub fn elements(v: Found<'_>) -> Option<Vec<Found<'_>>> {
    if v.kind != Kind::Array {
        return None;
    }
    let (mut found, mut at) = (Vec::new(), 1);
    loop {
        at = scan::skip_blanks(v.raw, at);
        if v.raw.get(at) == Some(&b',') {
            at = scan::skip_blanks(v.raw, at + 1);
        }
        let Some((spot, end)) = scan::skip(v.raw, at) else {
            return Some(found);
        };
        found.push(spot.of(v.raw));
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config<'_> {
        Config::new(Value::parse(text.as_bytes())).unwrap()
    }

    #[test]
    fn reads_what_is_there() {
        let text = r#"{"a":"x\"y","b":true,"d":"1h","e":[ "p", "q" ],"f":"r","i":7,"n":null,"o":{"k":"v"},"w":"two"}"#;
        let mut c = config(text);
        assert_eq!(c.required("a").unwrap(), "x\"y");
        assert_eq!((c.flag("b").unwrap(), c.flag("no").unwrap()), (true, false));
        assert_eq!(c.duration("d").unwrap(), Some(3_600_000));
        assert_eq!(c.strings("e").unwrap(), ["p", "q"]);
        assert_eq!(c.strings("f").unwrap(), ["r"]);
        assert_eq!(c.int("i", 0, 7).unwrap(), Some(7));
        assert_eq!(c.string("n").unwrap(), None);
        assert_eq!(c.choice("w", &["one", "two"]).unwrap(), "two");
        let mut o = c.object("o").unwrap().unwrap();
        assert_eq!(o.rest().len(), 1);
        o.finish().unwrap();
        c.finish().unwrap();
    }

    #[test]
    fn refuses_the_rest() {
        let refused = |text: &str, read: fn(&mut Config<'_>) -> Result| {
            let mut c = config(text);
            read(&mut c).and_then(|()| c.finish()).unwrap_err().reason().to_owned()
        };
        assert_eq!(refused(r#"{"a":1}"#, |_| Ok(())), "config: a is no setting of this transform");
        assert_eq!(refused(r#"{"a":1}"#, |c| c.string("a").map(drop)), "config: a is not a string");
        assert_eq!(refused("{}", |c| c.required("a").map(drop)), "config: a is missing");
        assert_eq!(refused(r#"{"a":"x"}"#, |c| c.choice("a", &["y", "z"]).map(drop)), "config: a is \"x\", not one of y, z");
        assert_eq!(refused(r#"{"a":"5"}"#, |c| c.duration("a").map(drop)), "config: a is not a duration such as 500ms, 10s, 15m, 2h or 1d");
        assert_eq!(refused(r#"{"a":8}"#, |c| c.int("a", 0, 7).map(drop)), "config: a is not an integer from 0 to 7");
        assert_eq!(refused(r#"{"a":{"b":1}}"#, |c| c.object("a")?.unwrap().finish()), "config: a.b is no setting of this transform");
        assert_eq!(refused(r#"{"a":[1]}"#, |c| c.strings("a").map(drop)), "config: a is not a list of strings");
        assert_eq!(refused(r#"{"a":0}"#, |c| c.flag("a").map(drop)), "config: a is not true or false");
    }
}
