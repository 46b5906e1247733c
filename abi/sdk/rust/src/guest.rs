//! The exported functions' bodies: arenas, the loop over a frame, error text.

use crate::host::{Level, log};
use crate::mem::{self, Arena};
use crate::out::{Out, cut};
use crate::raw::{self, Frame, Rec};
use crate::record::{Batch, Record};
use crate::reject::Result;
use crate::state::{Records, Want};
use crate::value::Value;
use core::cell::UnsafeCell;

/// A transform with a memory of its own, which lasts for one lane of one batch. A function of a record and [`Out`] is one
/// too, without memory.
pub trait Transform {
    /// Handles one record. An error sets the record aside, see [`Reject`](crate::Reject); changes of state that were made
    /// before stay, unless it is [`fail`](crate::fail).
    ///
    /// # Errors
    /// Whatever the transform refuses.
    fn record(&mut self, record: Record<'_>, out: &mut Out) -> Result;

    /// Handles one timer that is due: its key, its time as the event time, and [`Record::sub`]. Without this it is handed to
    /// `record`.
    ///
    /// # Errors
    /// Any error fails the batch.
    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        self.record(timer, out)
    }

    /// Says which entries of state a record or timer is going to read, by the `want` of their tables. It is called for all of
    /// a frame before the first is handled, so that one call of the host reads them all; what it does not name is read
    /// alone when it is needed. Without this the SDK learns which tables are read by the record's key alone.
    #[inline(always)]
    fn prefetch(&mut self, _record: &Record<'_>, want: &mut Want<'_>) {
        want.learn();
    }

    /// Called once at the end of the lane, for what was held back. Its records stem from no input.
    ///
    /// # Errors
    /// Any error fails the batch.
    fn finish(&mut self, _out: &mut Out) -> Result {
        Ok(())
    }
}

impl<F: FnMut(Record<'_>, &mut Out) -> Result> Transform for F {
    #[inline]
    fn record(&mut self, record: Record<'_>, out: &mut Out) -> Result {
        self(record, out)
    }
}

/// State is written out between two records when it holds more than this many bytes.
const SPILL: usize = 8 << 20;

/// A transform and all that it works with.
pub struct Guest<T> {
    input: Arena,
    text: Arena,
    out: Out,
    transform: Option<T>,
}

impl<T: Transform> Guest<T> {
    /// Nothing allocated yet.
    pub const fn new() -> Self {
        Guest { input: Arena::EMPTY, text: Arena::EMPTY, out: Out::new(), transform: None }
    }

    /// `wasmill_alloc`: where the host may write `len` bytes, or 0.
    pub fn alloc(&mut self, len: u32) -> u32 {
        if self.input.hold(len as usize) { mem::addr(self.input.base) } else { 0 }
    }

    /// `wasmill_init`: makes the transform and the arenas. Nonzero refuses the module; the reason is in the log.
    ///
    /// # Safety
    /// `len` bytes lie at `ptr`.
    pub unsafe fn init(&mut self, ptr: u32, len: u32, max_frame: u32, make: impl FnOnce(Value<'_>) -> Result<T>) -> i32 {
        let config = if len == 0 {
            b"{}"
        } else {
            // SAFETY: by the contract of this function.
            unsafe { core::slice::from_raw_parts(mem::ptr(ptr), len as usize) }
        };
        match make(Value::parse(config)) {
            Ok(t) => self.transform = Some(t),
            Err(e) => {
                log(Level::Error, e.reason());
                return 1;
            }
        }
        let room = max_frame as usize;
        if self.text.hold(raw::MAX_TEXT) && self.out.make(room) && self.input.hold(room + mem::ALIGN) {
            return 0;
        }
        log(Level::Error, "not enough memory for the arenas");
        1
    }

    /// `wasmill_batch`: runs one frame. Nonzero fails it; the reason is in the frame's error text.
    ///
    /// # Safety
    /// A frame of ABI 1 lies at `ptr`, as the specification says.
    pub unsafe fn batch(&mut self, ptr: u32) -> i32 {
        let frame = mem::ptr(ptr).cast::<Frame>();
        // SAFETY: by the contract of this function; only progress and error text are written, through the same pointer.
        let f = unsafe { &*frame };
        if f.magic != raw::MAGIC || f.version != raw::VERSION {
            return 1;
        }
        self.out.batch = Batch::read(f);
        let (count, stride, nfields) = (f.count, f.stride as usize, f.nfields);
        let mut at = mem::ptr(f.records).cast_const();
        // SAFETY: `count` records lie `stride` bytes apart.
        let timers = count > 0 && unsafe { (*at.cast::<Rec>()).kind != 0 };
        self.out.state.cache.seed = f.seed[0];
        self.out.state.now = [f.watermark, f.batch_time];
        self.out.state.frame = Records { at, count, stride };
        // SAFETY: as above.
        unsafe { self.prefetch(nfields) };
        let Some(transform) = self.transform.as_mut() else {
            return 1;
        };
        for _ in 0..count {
            let rec = at.cast::<Rec>();
            // SAFETY: as above.
            let record = unsafe {
                (*frame).progress = (*rec).index;
                Record::new(rec, nfields)
            };
            let done = if timers { transform.timer(record, &mut self.out) } else { transform.record(record, &mut self.out) };
            if let Err(why) = done {
                if timers {
                    // A timer cannot be set aside.
                    // SAFETY: the frame is the one at hand.
                    unsafe { self.explain(frame, why.reason()) };
                    return 1;
                }
                self.out.reject(&record, &why);
            }
            if self.out.state.held > SPILL
                && let Some(hooks) = self.out.state.hooks
            {
                (hooks.spill)(&mut self.out.state);
            }
            at = at.wrapping_add(stride);
        }
        let last = self.out.batch.last;
        let done = if last { transform.finish(&mut self.out) } else { Ok(()) };
        self.out.flush();
        if let (Some(hooks), Ok(())) = (self.out.state.hooks, &done) {
            (hooks.end)(&mut self.out.state, last);
        }
        match done {
            Ok(()) => 0,
            Err(why) => {
                // SAFETY: as above.
                unsafe { self.explain(frame, why.reason()) };
                1
            }
        }
    }

    /// Reads what the frame's records will need of state.
    ///
    /// # Safety
    /// The state's `frame` is the one at hand.
    unsafe fn prefetch(&mut self, nfields: u32) {
        let Some(transform) = self.transform.as_mut() else {
            return;
        };
        let Records { mut at, count, stride } = self.out.state.frame;
        self.out.state.told = true;
        let mut want = Want { lane: &mut self.out.state, batch: &self.out.batch };
        for _ in 0..count {
            // SAFETY: by the contract of this function.
            transform.prefetch(&unsafe { Record::new(at.cast(), nfields) }, &mut want);
            if !want.lane.told {
                break;
            }
            at = at.wrapping_add(stride);
        }
        if let Some(hooks) = self.out.state.hooks {
            (hooks.begin)(&mut self.out.state);
        }
    }

    /// Leaves an error text in the frame.
    unsafe fn explain(&mut self, frame: *mut Frame, text: &str) {
        let text = cut(text, raw::MAX_TEXT).as_bytes();
        // SAFETY: the text arena holds MAX_TEXT bytes, and the frame is the one at hand.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), self.text.base, text.len());
            (*frame).error = mem::addr(self.text.base);
            (*frame).error_len = text.len() as u32;
        }
    }

    /// Leaves a panic's words in the frame, or in the log when there is no frame.
    pub fn panicked(&mut self, ptr: u32, text: &str) {
        if ptr == 0 {
            log(Level::Error, text);
        } else if !self.text.base.is_null() {
            // SAFETY: ptr is the frame that is being run.
            unsafe { self.explain(mem::ptr(ptr).cast(), text) }
        }
    }
}

impl<T: Transform> Default for Guest<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A module's one guest. A module has one thread, and calls do not nest.
pub struct Global<T> {
    guest: UnsafeCell<Guest<T>>,
    frame: UnsafeCell<u32>,
}

// SAFETY: only used in modules, which have one thread.
unsafe impl<T> Sync for Global<T> {}

impl<T: Transform> Global<T> {
    /// Nothing allocated yet.
    pub const fn new() -> Self {
        Global { guest: UnsafeCell::new(Guest::new()), frame: UnsafeCell::new(0) }
    }

    /// See [`Guest::alloc`].
    pub fn alloc(&'static self, len: u32) -> u32 {
        // SAFETY: calls do not nest.
        unsafe { (*self.guest.get()).alloc(len) }
    }

    /// See [`Guest::init`]. Also sets the panic hook.
    ///
    /// # Safety
    /// As for [`Guest::init`].
    pub unsafe fn init(&'static self, ptr: u32, len: u32, max_frame: u32, make: fn(Value<'_>) -> Result<T>) -> i32 {
        std::panic::set_hook(Box::new(|info| {
            // SAFETY: the panic aborts: whoever borrowed the guest never goes on.
            unsafe { (*self.guest.get()).panicked(*self.frame.get(), &info.to_string()) }
        }));
        // SAFETY: calls do not nest.
        unsafe { (*self.guest.get()).init(ptr, len, max_frame, make) }
    }

    /// See [`Guest::batch`].
    ///
    /// # Safety
    /// As for [`Guest::batch`].
    pub unsafe fn batch(&'static self, ptr: u32) -> i32 {
        // SAFETY: calls do not nest.
        unsafe {
            *self.frame.get() = ptr;
            let status = (*self.guest.get()).batch(ptr);
            *self.frame.get() = 0;
            status
        }
    }
}

impl<T: Transform> Default for Global<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a module of a transform: its exports and its manifest section.
///
/// `transform!(MANIFEST, f)` takes a function `fn(Record, &mut Out) -> Result`; `transform!(MANIFEST, T, make)` takes a type
/// that is a [`Transform`] and a function `fn(config: Value) -> Result<T>` that makes one of the job's configuration.
#[macro_export]
macro_rules! transform {
    ($manifest:expr, $record:path) => {
        #[cfg(target_arch = "wasm32")]
        struct WasmillFunction;

        #[cfg(target_arch = "wasm32")]
        impl $crate::Transform for WasmillFunction {
            #[inline(always)]
            fn record(&mut self, record: $crate::Record<'_>, out: &mut $crate::Out) -> $crate::Result {
                $record(record, out)
            }
        }

        $crate::transform!($manifest, WasmillFunction, |_| Ok(WasmillFunction));
    };
    ($manifest:expr, $transform:ty, $make:expr) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[used]
            #[unsafe(link_section = "wasmill")]
            static SECTION: [u8; $manifest.len()] = $crate::module::section($manifest);

            static GUEST: $crate::module::Global<$transform> = $crate::module::Global::new();

            #[unsafe(no_mangle)]
            extern "C" fn wasmill_alloc(len: u32) -> u32 {
                GUEST.alloc(len)
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn wasmill_init(ptr: u32, len: u32, max_frame: u32) -> i32 {
                unsafe { GUEST.init(ptr, len, max_frame, $make) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn wasmill_batch(ptr: u32, _len: u32) -> i32 {
                unsafe { GUEST.batch(ptr) }
            }
        };
    };
}
