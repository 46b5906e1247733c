//! New members, or a new object, from expressions.

mod edit;

use edit::Edits;
use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Type, Work};
use stock::fields::Fields;
use wasmill::{Out, Port, Record, Result, Transform, Value};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");

wasmill::transform!(MANIFEST, Map, Map::new);

/// What the new value is.
enum Shape {
    Same,
    Fields(Fields),
    Edits(Edits),
}

struct Map {
    program: Program,
    condition: Option<Expr>,
    shape: Shape,
    key: Option<Expr>,
    work: Work,
    value: Vec<u8>,
    key_bytes: Vec<u8>,
}

impl Map {
    fn new(config: Value<'_>) -> Result<Map> {
        let mut c = Config::new(config)?;
        let mut program = Program::new();
        let condition = c.string("where")?.map(|text| program.compile("where", &text, Type::Bool)).transpose()?;
        let fields = Fields::read(&mut c, "fields", &mut program)?;
        let edits = Edits::read(&mut c, &mut program)?;
        let key = c.string("key")?.map(|text| program.compile("key", &text, Type::Any)).transpose()?;
        c.finish()?;
        let shape = match (fields, edits) {
            (Some(_), Some(_)) => return Err(refuse("fields makes a new object: set, drop and keep have nothing to work on")),
            (Some(fields), None) => Shape::Fields(fields),
            (None, Some(edits)) => Shape::Edits(edits),
            (None, None) if key.is_some() => Shape::Same,
            (None, None) => return Err(refuse("fields, set, drop, keep or key is needed (to only drop records, use filter)")),
        };
        Ok(Map { program, condition, shape, key, work: Work::default(), value: Vec::new(), key_bytes: Vec::new() })
    }
}

impl Transform for Map {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let mut row = self.program.row(&mut self.work, &r, out)?;
        if let Some(condition) = self.condition
            && !row.is_true(condition)?
        {
            return Ok(());
        }
        self.value.clear();
        match &self.shape {
            Shape::Same => self.value.extend_from_slice(r.value().unwrap_or(b"null")),
            Shape::Fields(fields) => fields.write(&mut row, &mut self.value)?,
            Shape::Edits(edits) => edits.write(r.value().unwrap_or(b"null"), &mut row, &mut self.value)?,
        }
        let Some(key) = self.key else {
            out.from(&r).value(Some(&self.value), OUT);
            return Ok(());
        };
        self.key_bytes.clear();
        let draft = if row.write_text(key, &mut self.key_bytes)? { out.from(&r).key(&self.key_bytes) } else { out.from(&r).no_key() };
        draft.value(Some(&self.value), OUT);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
