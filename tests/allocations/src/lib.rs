//! Counts allocations of the heap, and what of them is held: a test that uses this crate has its allocator. Time and what a process has of
//! the system depend on the machine, these numbers do not. The crate knows nothing of what is counted. Read first: [`allocations()`],
//! [`held()`].
//!
//! `cargo doc --open` opens this page, because the name of its package is the first of the workspace. The documentation of the
//! library begins at [`koord`](../koord/index.html), that of Koordinator at [`koord_types`](../koord_types/index.html).

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// What this thread has allocated without what it has freed, be it that another had allocated it.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn hold(more: usize, less: usize) {
    HELD.with(|held| held.set(held.get().wrapping_add_unsigned(more).wrapping_sub_unsigned(less)));
}

struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        hold(layout.size(), 0);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        hold(size, layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread allocates or grows memory while something is done, and what that gives.
pub fn allocations<T>(act: impl FnOnce() -> T) -> (usize, T) {
    let before = COUNT.with(Cell::get);
    let result = act();
    (COUNT.with(Cell::get) - before, result)
}

/// How many bytes this thread holds more than when it began, of what it allocates and frees itself.
pub fn held() -> isize {
    HELD.with(Cell::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_or_grows_is_counted_and_of_this_thread_alone() {
        let (count, mut numbers) = allocations(|| Vec::<u64>::with_capacity(1));
        assert_eq!((count, allocations(|| numbers.extend([1, 2, 3])).0), (1, 1));
        let elsewhere = || std::thread::spawn(|| allocations(|| vec![0_u8; 10]).0).join();
        let (here, there) = allocations(elsewhere);
        assert!(
            here > 0 && there.is_ok_and(|there| there == 1),
            "to start a thread allocates, what it does is its own"
        );
        assert_eq!(allocations(|| 1 + 1), (0, 2));
    }

    #[test]
    fn what_is_allocated_is_held_until_it_is_freed() {
        let before = held();
        let mut bytes = Vec::<u8>::with_capacity(1000);
        assert_eq!(held() - before, 1000);
        bytes.reserve_exact(3000);
        assert_eq!(held() - before, 3000);
        drop(bytes);
        assert_eq!(held(), before);
    }
}
