//! The metrics of the process.

use crate::{Description, Unit};

/// What the operating system says of the process, under the names that every Prometheus client uses.
pub const PROCESS: [Description; 7] = [
    Description::counter("process_cpu_seconds_total", &[], "User and system CPU time.").unit(Unit::Seconds),
    Description::gauge("process_open_fds", &[], "Open file descriptors."),
    Description::gauge("process_max_fds", &[], "File descriptors that may be open."),
    Description::gauge("process_virtual_memory_bytes", &[], "Virtual memory.").unit(Unit::Bytes),
    Description::gauge("process_resident_memory_bytes", &[], "Resident memory.").unit(Unit::Bytes).advice(
        "docs/performance.md says what a cluster of 5 000 nodes takes; `koord_cache_objects` says what is kept.",
    ),
    Description::gauge("process_start_time_seconds", &[], "Start of the process.").unit(Unit::UnixTime),
    Description::gauge("process_threads", &[], "Threads."),
];
