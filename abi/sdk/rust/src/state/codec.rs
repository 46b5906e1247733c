//! How values and sub-keys become bytes.

/// A value of a state table. A type of your own says how it is written and read; it should begin with a version if it may
/// change, for stored state outlives the module that wrote it.
pub trait Codec: Sized {
    /// Appends the bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// The value of these bytes; `None` when they are none.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Codec for Vec<u8> {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl Codec for String {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// Eight bytes, little-endian: what a table of type `i64` holds.
impl Codec for i64 {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Each as above, one behind the other.
impl<const N: usize> Codec for [i64; N] {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|n| n.write(to));
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: &[[u8; 8]; N] = words.try_into().ok()?;
        rest.is_empty().then(|| words.map(i64::from_le_bytes))
    }
}

/// Nothing: a map of these is a set.
impl Codec for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

/// A sub-key of a map. Integers are written so that the order of their bytes, which is that of scans, is their own.
pub trait Sub {
    /// What is read back.
    type Owned;

    /// Calls `f` with the bytes.
    fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// The sub-key of these bytes; `None` when they are none.
    fn parse(bytes: &[u8]) -> Option<Self::Owned>;
}

impl Sub for [u8] {
    type Owned = Vec<u8>;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }

    fn parse(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

impl Sub for str {
    type Owned = String;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }

    fn parse(bytes: &[u8]) -> Option<String> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// Eight bytes, big-endian.
impl Sub for u64 {
    type Owned = u64;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.to_be_bytes())
    }

    fn parse(bytes: &[u8]) -> Option<u64> {
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }
}

/// Eight bytes, big-endian, with the sign bit turned over.
impl Sub for i64 {
    type Owned = i64;

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&((*self as u64) ^ 1 << 63).to_be_bytes())
    }

    fn parse(bytes: &[u8]) -> Option<i64> {
        Some((u64::from_be_bytes(bytes.try_into().ok()?) ^ 1 << 63) as i64)
    }
}
