//! A stand-in for the host, to test transforms natively. It checks what comes out as little as a friendly host would, and
//! limits nothing; a module is proven by running it on Wasmill. Not part of modules.

pub(crate) mod state;

use crate::guest::{Guest, Transform};
use crate::host::Level;
use crate::mem;
use crate::raw::{self, Entry, Frame, Located, Rec};
use crate::record::Batch;
use crate::value::{Kind, Value};
use std::cell::RefCell;

pub use state::{Keyed, Timer};

/// A record for the transform. `None` is null, or no event time.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Names and values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Microseconds since 1970.
    pub event_time: Option<i64>,
    /// Where the record stands in its partition.
    pub offset: i64,
    /// Where it came from.
    pub partition: i32,
    /// The number of the input (the `from` entry of the job) it comes by.
    pub input: u16,
}

impl From<&str> for Input {
    fn from(value: &str) -> Input {
        Input { value: Some(value.into()), ..Input::default() }
    }
}

/// A record that came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The position of its output in the manifest.
    pub port: u16,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Names and values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Microseconds since 1970.
    pub event_time: Option<i64>,
    /// The input it stems from.
    pub index: Option<u32>,
    /// For a refused record: code, reason, and whether it is poison.
    pub reject: Option<(u16, String, bool)>,
}

/// A stand-in for the host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The text of the manifest; empty for a module without one.
    pub manifest: String,
    /// What the frames say; `first`, `last` and `chunk` are set by `run`.
    pub batch: Batch,
    /// Most records of a frame.
    pub chunk: usize,
    /// The largest frame, which is also the size of the output arena.
    pub max_frame: u32,
}

impl Host {
    /// The usual, with this manifest.
    pub fn new(manifest: &str) -> Host {
        Host { manifest: manifest.into(), batch: Batch::default(), chunk: 1024, max_frame: 262_288 }
    }

    /// Hands the inputs to the transform as one lane of one batch, with the lane's last frame, and returns what came out.
    ///
    /// # Errors
    /// What the host would report: a refused module, or a failed frame.
    pub fn run<T: Transform>(&self, transform: T, inputs: &[Input]) -> Result<Vec<Output>, String> {
        self.lane(|_| Ok(transform), inputs, Vec::new)
    }

    /// Runs a lane: records, then the timers that are due after them, then the last frame.
    fn lane<T: Transform>(
        &self,
        make: impl FnOnce(Value<'_>) -> crate::Result<T>,
        inputs: &[Input],
        due: impl FnOnce() -> Vec<Timer>,
    ) -> Result<Vec<Output>, String> {
        let mark = mem::mark();
        let done = self.frames(make, inputs, due);
        // SAFETY: the guest is gone, and what came out is copied.
        unsafe { mem::rewind(mark) };
        done
    }

    fn frames<T: Transform>(
        &self,
        make: impl FnOnce(Value<'_>) -> crate::Result<T>,
        inputs: &[Input],
        due: impl FnOnce() -> Vec<Timer>,
    ) -> Result<Vec<Output>, String> {
        SAID.with_borrow_mut(|s| *s = Said::default());
        let mut guest = Guest::new();
        // SAFETY: an empty config is not looked at.
        if unsafe { guest.init(0, 0, self.max_frame, make) } != 0 {
            return Err(log().join("; "));
        }
        let (mut batch, pointers) = (self.batch, pointers(&self.manifest));
        (batch.chunk, batch.first, batch.last) = (0, true, false);
        for (i, chunk) in inputs.chunks(self.chunk).enumerate() {
            call(&mut guest, &batch, &records(chunk, i * self.chunk), &pointers)?;
            (batch.first, batch.chunk) = (false, batch.chunk + 1);
        }
        let timers = due();
        for domain in timers.chunk_by(|a, b| a.domain == b.domain) {
            for chunk in domain.chunks(self.chunk) {
                call(&mut guest, &batch, &state::records(chunk), &[])?;
                (batch.first, batch.chunk) = (false, batch.chunk + 1);
            }
        }
        batch.last = true;
        call(&mut guest, &batch, &[], &[])?;
        Ok(SAID.with_borrow_mut(|s| std::mem::take(&mut s.outputs)))
    }
}

/// Runs a transform on these inputs; see [`Host::run`].
///
/// # Errors
/// As for [`Host::run`].
pub fn run<T: Transform>(manifest: &str, transform: T, inputs: &[Input]) -> Result<Vec<Output>, String> {
    Host::new(manifest).run(transform, inputs)
}

/// What the last run on this thread wrote to the log.
pub fn log() -> Vec<String> {
    SAID.with_borrow(|s| s.log.clone())
}

#[derive(Default)]
struct Said {
    outputs: Vec<Output>,
    log: Vec<String>,
}

thread_local! {
    static SAID: RefCell<Said> = RefCell::default();
}

pub(crate) fn receive(records: *const u8, count: u32) {
    for i in 0..count as usize {
        // SAFETY: the output array holds `count` records.
        let rec = unsafe { *records.cast::<Rec>().add(i) };
        SAID.with_borrow_mut(|s| s.outputs.push(output(&rec)));
    }
}

pub(crate) fn hear(_level: Level, text: &str) {
    SAID.with_borrow_mut(|s| s.log.push(text.into()));
}

fn output(rec: &Rec) -> Output {
    let value = take(rec.value, rec.value_len);
    let mut out = Output {
        port: rec.port,
        key: take(rec.key, rec.key_len),
        event_time: (rec.flags & raw::HAS_EVENT_TIME != 0).then_some(rec.event_time),
        index: (rec.index != raw::NO_INDEX).then_some(rec.index),
        ..Output::default()
    };
    if rec.kind != 0 {
        let reason = String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
        out.reject = Some((rec.partition as u16, reason, rec.kind == raw::FAIL));
        return out;
    }
    out.value = value;
    for i in 0..usize::from(rec.header_count) {
        // SAFETY: the entries lie where the record says, 4-aligned.
        let e = unsafe { *mem::ptr(rec.headers).cast::<Entry>().add(i) };
        let name = take(e.name, e.name_len as i32).unwrap_or_default();
        out.headers.push((String::from_utf8_lossy(&name).into_owned(), take(e.value, e.value_len)));
    }
    out
}

fn take(addr: u32, len: i32) -> Option<Vec<u8>> {
    // SAFETY: what the guest points at lies in its arenas or in the frame.
    (len >= 0).then(|| if len == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(mem::ptr(addr), len as usize) }.to_vec() })
}

/// The fields that the manifest's first input declares.
fn pointers(manifest: &str) -> Vec<String> {
    let inputs = Value::parse(manifest.as_bytes()).get("inputs");
    let Some(first) = inputs.elements().next() else {
        return Vec::new();
    };
    let fields = first.get("fields");
    fields.elements().map(|f| f.str().ok().flatten().unwrap_or_default().into_owned()).collect()
}

/// A record or a timer of a frame.
struct Row<'a> {
    input: std::borrow::Cow<'a, Input>,
    kind: u8,
    index: u32,
}

fn records(inputs: &[Input], from: usize) -> Vec<Row<'_>> {
    let row = |(i, input)| Row { input: std::borrow::Cow::Borrowed(input), kind: 0, index: (from + i) as u32 };
    inputs.iter().enumerate().map(row).collect()
}

/// Writes one frame and runs it.
fn call<T: Transform>(guest: &mut Guest<T>, batch: &Batch, rows: &[Row<'_>], pointers: &[String]) -> Result<(), String> {
    let inputs: Vec<&Input> = rows.iter().map(|r| &*r.input).collect();
    let stride = size_of::<Rec>() + 8 * pointers.len();
    let bytes = |v: &Option<Vec<u8>>| v.as_ref().map_or(0, Vec::len);
    let sizes =
        inputs.iter().map(|i| stride + bytes(&i.key) + bytes(&i.value) + i.headers.iter().map(|(n, v)| 16 + n.len() + bytes(v)).sum::<usize>());
    let total = size_of::<Frame>() + sizes.sum::<usize>();
    let base = guest.alloc(total as u32 + 16);
    let records = base + size_of::<Frame>() as u32;
    let mut entries = records + (stride * inputs.len()) as u32;
    let mut data = entries + inputs.iter().map(|i| 16 * i.headers.len() as u32).sum::<u32>();
    let mut put = |v: Option<&[u8]>| -> (u32, i32) {
        let Some(v) = v else { return (0, -1) };
        let at = data;
        // SAFETY: the frame was made for all of these bytes.
        unsafe { std::ptr::copy_nonoverlapping(v.as_ptr(), mem::ptr(at), v.len()) };
        data += v.len() as u32;
        (at, v.len() as i32)
    };
    for (i, input) in inputs.iter().enumerate() {
        let at = mem::ptr(records + (i * stride) as u32).cast::<Rec>();
        let value = Value::parse(input.value.as_deref().unwrap_or_default());
        let flags = u8::from(input.event_time.is_some()) | if value.kind() == Kind::Absent { raw::NOT_JSON } else { 0 };
        let headers = entries;
        for (name, v) in &input.headers {
            let (name, v) = (put(Some(name.as_bytes())), put(v.as_deref()));
            // SAFETY: the frame was made for these entries.
            unsafe { *mem::ptr(entries).cast::<Entry>() = Entry { name: name.0, name_len: name.1 as u32, value: v.0, value_len: v.1 } };
            entries += 16;
        }
        let (key, text) = (put(input.key.as_deref()), put(input.value.as_deref()));
        let rec = Rec {
            event_time: input.event_time.unwrap_or(0),
            offset: input.offset,
            key: key.0,
            key_len: key.1,
            value: text.0,
            value_len: text.1,
            headers,
            header_count: input.headers.len() as u16,
            flags,
            partition: input.partition,
            input: input.input,
            index: rows[i].index,
            kind: rows[i].kind,
            ..Rec::EMPTY
        };
        // SAFETY: the frame was made for these records and their fields.
        unsafe {
            *at = rec;
            for (k, pointer) in pointers.iter().enumerate() {
                *at.add(1).cast::<Located>().add(k) = locate(value, pointer, text.0, input.value.as_deref().unwrap_or_default());
            }
        }
    }
    let flags = u16::from(batch.first) | u16::from(batch.last) << 1;
    let frame = Frame {
        magic: raw::MAGIC,
        version: raw::VERSION,
        flags,
        header_len: 128,
        total: total as u32,
        count: inputs.len() as u32,
        records,
        stride: stride as u32,
        nfields: pointers.len() as u32,
        batch: batch.id,
        batch_time: batch.time,
        late_watermark: batch.late_watermark,
        watermark: batch.watermark,
        seed: batch.seed,
        lane: batch.lane,
        chunk: batch.chunk,
        fuel: 0,
        progress: u32::MAX,
        error: 0,
        error_len: 0,
        zero: [0; 5],
    };
    let at = mem::ptr(base).cast::<Frame>();
    // SAFETY: a whole frame lies at base.
    let (status, text) = unsafe {
        *at = frame;
        let status = guest.batch(base);
        (status, take((*at).error, (*at).error_len as i32))
    };
    if status == 0 {
        return Ok(());
    }
    Err(format!("status {status}: {}", String::from_utf8_lossy(&text.unwrap_or_default())))
}

/// Where a JSON pointer leads to, as the host says it in a frame with the text at `at`.
fn locate(mut v: Value<'_>, pointer: &str, at: u32, text: &[u8]) -> Located {
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let element = token.parse().ok().and_then(|i: usize| v.elements().nth(i));
        v = element.or_else(|| v.members().filter(|(k, _)| k.is(&token)).last().map(|m| m.1)).unwrap_or(Value::absent(""));
    }
    if v.kind() == Kind::Absent {
        return Located { ptr: 0, len_kind: 0 };
    }
    let start = v.raw().as_ptr() as usize - text.as_ptr() as usize;
    Located { ptr: at + start as u32, len_kind: v.raw().len() as u32 | (v.kind() as u32) << 28 }
}
