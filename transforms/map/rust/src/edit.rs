//! Adds, replaces and takes away members of an object, in its own order, without reading what does not change.

use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Row, Type};
use stock::json;
use stock::scan::{self, Found};
use wasmill::{BAD_FIELD, Kind, Result, dead_letter};

/// What becomes of a member.
#[derive(Clone, Copy)]
enum Change {
    Set(Expr),
    Drop,
    Keep,
}

#[derive(Default)]
struct Node {
    /// The member's name, and the same as JSON text with a colon.
    name: String,
    label: Vec<u8>,
    change: Option<Change>,
    children: Vec<Node>,
}

/// All changes of a record.
pub struct Edits {
    root: Node,
    /// Only what is named is kept.
    only: bool,
}

impl Edits {
    /// Reads `set`, `drop` and `keep`; `None` when there is none of them.
    pub fn read(c: &mut Config<'_>, program: &mut Program) -> Result<Option<Edits>> {
        let mut root = Node::default();
        let keep = c.strings("keep")?;
        for pointer in &keep {
            add(&mut root, pointer, Change::Keep)?;
        }
        for pointer in c.strings("drop")? {
            add(&mut root, &pointer, Change::Drop)?;
        }
        if let Some(mut set) = c.object("set")? {
            for (pointer, text) in set.rest() {
                let place = set.place(&pointer);
                let text = stock::config::string(text).ok_or_else(|| refuse(format!("{place} is not a string with an expression")))?;
                add(&mut root, &pointer, Change::Set(program.compile(&place, &text, Type::Any)?))?;
            }
        }
        if root.children.is_empty() {
            return Ok(None);
        }
        Ok(Some(Edits { root, only: !keep.is_empty() }))
    }

    /// Appends the changed object.
    pub fn write(&self, value: &[u8], row: &mut Row<'_>, to: &mut Vec<u8>) -> Result {
        let found = scan::whole(value);
        if found.kind != Kind::Object {
            return Err(dead_letter(BAD_FIELD, "the value is not a JSON object"));
        }
        object(&self.root, Some(found), !self.only, row, to)
    }
}

/// Notes a change.
fn add(root: &mut Node, pointer: &str, change: Change) -> Result {
    let tokens = scan::tokens(pointer).map_err(refuse)?;
    if tokens.is_empty() {
        return Err(refuse("the pointer \"\" is the whole value: name its members, or use fields"));
    }
    let mut at = root;
    for token in tokens {
        let known = at.children.iter().position(|n| n.name == token);
        let next = known.unwrap_or(at.children.len());
        if known.is_none() {
            let mut label = Vec::new();
            json::string(&mut label, token.as_bytes());
            label.push(b':');
            at.children.push(Node { name: token, label, ..Node::default() });
        }
        at = &mut at.children[next];
        if matches!(at.change, Some(Change::Set(_) | Change::Drop)) {
            return Err(refuse(format!("{pointer} lies in what is set or dropped already")));
        }
    }
    if at.change.is_some() || !matches!(change, Change::Keep) && !at.children.is_empty() {
        return Err(refuse(format!("{pointer} is kept, set or dropped twice, or something in it is")));
    }
    at.change = Some(change);
    Ok(())
}

/// Writes an object with the changes of a node; `rest` says whether what is not named is kept.
fn object(node: &Node, value: Option<Found<'_>>, rest: bool, row: &mut Row<'_>, to: &mut Vec<u8>) -> Result {
    let start = to.len();
    let mut seen = 0u64;
    for (name, escaped, member) in scan::members(value.map_or(b"{}", |v| v.raw)) {
        let Some(i) = child(node, name, escaped) else {
            if rest {
                label(to, start, name);
                member.write(to);
            }
            continue;
        };
        let n = &node.children[i];
        // Of members with the same name the first gives the place.
        let again = i < 64 && seen & 1 << i != 0;
        seen |= if i < 64 { 1 << i } else { 0 };
        match n.change {
            Some(Change::Drop) => {}
            Some(Change::Set(_)) if again => {}
            Some(Change::Set(e)) => {
                label(to, start, name);
                row.write(e, to)?;
            }
            _ => {
                let rest = rest || n.change.is_some();
                if n.children.is_empty() || member.kind != Kind::Object && !sets(n) {
                    if rest {
                        label(to, start, name);
                        member.write(to);
                    }
                    continue;
                }
                if member.kind != Kind::Object && !member.is_null() {
                    return Err(dead_letter(BAD_FIELD, format!("{} is no object: nothing can be set in it", n.name)));
                }
                label(to, start, name);
                object(n, Some(member).filter(|m| m.kind == Kind::Object), rest, row, to)?;
            }
        }
    }
    for (i, n) in node.children.iter().enumerate() {
        let there = if i < 64 { seen & 1 << i != 0 } else { has(value, n) };
        if there || !sets(n) {
            continue;
        }
        to.push(if to.len() == start { b'{' } else { b',' });
        to.extend_from_slice(&n.label);
        match n.change {
            Some(Change::Set(e)) => row.write(e, to)?,
            _ => object(n, None, rest, row, to)?,
        }
    }
    if to.len() == start {
        to.push(b'{');
    }
    to.push(b'}');
    Ok(())
}

/// A bracket or comma, and a name as it was.
fn label(to: &mut Vec<u8>, start: usize, name: &[u8]) {
    to.push(if to.len() == start { b'{' } else { b',' });
    to.push(b'"');
    to.extend_from_slice(name);
    to.extend_from_slice(b"\":");
}

fn child(node: &Node, name: &[u8], escaped: bool) -> Option<usize> {
    if !escaped {
        return node.children.iter().position(|n| n.name.as_bytes() == name);
    }
    let mut plain = Vec::new();
    json::unescape(name, &mut plain);
    node.children.iter().position(|n| n.name.as_bytes() == plain)
}

fn has(value: Option<Found<'_>>, n: &Node) -> bool {
    scan::members(value.map_or(b"{}", |v| v.raw)).any(|(name, ..)| name == n.name.as_bytes())
}

/// True when something is set in it.
fn sets(n: &Node) -> bool {
    matches!(n.change, Some(Change::Set(_))) || n.children.iter().any(sets)
}
