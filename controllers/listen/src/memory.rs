//! Freed memory goes back to the system after a flood, and after so many large bodies that came one by one.
//!
//! glibc keeps what was freed for later, in a heap per thread. After a flood that is most of what the process has. What is made of large
//! bodies is freed in pieces between others that stay, and each thread has had some of them.

use crate::chunks::forget_free;

/// The highest value since the last time that it fell.
#[derive(Debug)]
pub(crate) struct HighWater {
    /// Peaks below this are not worth the work.
    least: usize,
    peak: usize,
}

// === impl HighWater ===

impl HighWater {
    pub(crate) const fn new(least: usize) -> Self {
        Self { least, peak: 0 }
    }

    /// The value has risen.
    pub(crate) fn rises(&mut self, value: usize) {
        self.peak = self.peak.max(value);
    }

    /// The value has fallen. Whether it is below a quarter of a peak, once for each peak.
    pub(crate) fn falls(&mut self, value: usize) -> bool {
        let is_low = self.peak >= self.least && value <= self.peak / 4;
        if is_low {
            self.peak = 0;
        }
        is_low
    }
}

/// How many bytes large bodies had since memory was given back last.
#[derive(Debug, Default)]
pub(crate) struct Passed(usize);

// === impl Passed ===

impl Passed {
    /// Smaller bodies leave no more behind than the next ones use.
    const LARGE: usize = 128 * 1024;
    /// It takes some milliseconds to give memory back.
    const BYTES: usize = 32 * 1024 * 1024;

    /// A body of this size is over. Whether that is enough to give memory back.
    pub(crate) fn ends(&mut self, bytes: usize) -> bool {
        self.0 += if bytes >= Self::LARGE { bytes } else { 0 };
        let is_much = self.0 >= Self::BYTES;
        if is_much {
            self.0 = 0;
        }
        is_much
    }
}

/// Gives freed memory back, beside the tasks of the runtime.
pub(crate) fn give_back() {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn_blocking(|| {
            forget_free();
            trim();
        }));
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn trim() {
    // SAFETY: it takes no pointers, and may be called from any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_large_bodies_one_by_one_are_noticed_too() {
        let mut passed = Passed::default();
        let large = Passed::BYTES / 4;
        assert_eq!(
            [large; 9].map(|bytes| passed.ends(bytes)),
            [false, false, false, true, false, false, false, true, false]
        );
        assert!((0..10_000).all(|_| !passed.ends(Passed::LARGE - 1)), "small ones do not count");
    }

    #[test]
    fn a_high_peak_is_noticed_once_when_it_is_over() {
        let mut water = HighWater::new(100);
        water.rises(99);
        assert!(!water.falls(0), "a small peak");
        water.rises(400);
        assert!(!water.falls(101));
        assert!(water.falls(100));
        assert!(!water.falls(0), "no new peak");
    }
}
