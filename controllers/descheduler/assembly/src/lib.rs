//! The descheduler put together: configuration, plugins by name, profiles.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
