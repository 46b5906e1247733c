//! Writes JSON: members in order, strings escaped, numbers exact.

use crate::json::{Put, ToJson};
use crate::manifest::Port;
use crate::out::Draft;

/// A JSON object in the making: the value of the record that [`Object::emit`] writes. Dropping it leaves no trace.
pub struct Object<'o> {
    draft: Draft<'o>,
    at: usize,
    comma: bool,
}

impl<'o> Object<'o> {
    #[inline(always)]
    pub(crate) fn open(mut draft: Draft<'o>) -> Self {
        let at = draft.len();
        draft.put(b"{");
        Object { draft, at, comma: false }
    }

    /// Goes on after an object's text without its last brace.
    #[inline(always)]
    pub(crate) fn reopen(mut draft: Draft<'o>, text: &[u8]) -> Self {
        let at = draft.len();
        draft.put(text);
        Object { draft, at, comma: text.last() != Some(&b'{') }
    }

    /// Adds a member. Names are not checked for duplicates.
    #[inline(always)]
    pub fn set(&mut self, name: &str, value: impl ToJson) -> &mut Self {
        let comma = core::mem::replace(&mut self.comma, true);
        self.draft.reserve(name.room() + value.room() + 2);
        // SAFETY: this is the room for a comma, the name, a colon and the value.
        unsafe {
            self.draft.raw(|mut to| {
                *to = b',';
                to = name.write(to.add(usize::from(comma)));
                *to = b':';
                value.write(to.add(1))
            });
        }
        self
    }

    /// Adds a member that is an object.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.name(name);
        self.nest(b"{", b"}", fill)
    }

    /// Adds a member that is an array.
    pub fn array(&mut self, name: &str, fill: impl FnOnce(&mut List<'_, 'o>)) -> &mut Self {
        self.name(name);
        self.nest(b"[", b"]", |o| fill(&mut List(o)))
    }

    /// Ends the object and writes the record to this output.
    #[inline]
    pub fn emit(mut self, to: Port) {
        self.draft.put(b"}");
        self.draft.finish(self.at, to);
    }

    fn name(&mut self, name: &str) {
        self.element(name);
        self.draft.put(b":");
    }

    fn element(&mut self, value: impl ToJson) {
        let comma = core::mem::replace(&mut self.comma, true);
        self.draft.reserve(value.room() + 1);
        // SAFETY: this is the room for a comma and the value.
        unsafe {
            self.draft.raw(|to| {
                *to = b',';
                value.write(to.add(usize::from(comma)))
            });
        }
    }

    fn nest(&mut self, open: &[u8], close: &[u8], fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.draft.put(open);
        self.comma = false;
        fill(self);
        self.draft.put(close);
        self.comma = true;
        self
    }
}

/// A JSON array in the making.
pub struct List<'a, 'o>(&'a mut Object<'o>);

impl<'o> List<'_, 'o> {
    /// Adds an element.
    pub fn push(&mut self, value: impl ToJson) -> &mut Self {
        self.0.element(value);
        self
    }

    /// Adds an element that is an object.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.separate();
        self.0.nest(b"{", b"}", fill);
        self
    }

    /// Adds an element that is an array.
    pub fn array(&mut self, fill: impl FnOnce(&mut List<'_, 'o>)) -> &mut Self {
        self.separate();
        self.0.nest(b"[", b"]", |o| fill(&mut List(o)));
        self
    }

    fn separate(&mut self) {
        if self.0.comma {
            self.0.draft.put(b",");
        }
    }
}
