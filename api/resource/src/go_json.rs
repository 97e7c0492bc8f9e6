//! JSON as Go reads and writes it.
//!
//! Users write JSON inside strings: the keys of ConfigMaps, annotations. The original decodes them with Go's
//! `encoding/json`, and objects in clusters rely on its rules: keys match whatever their case, of equal keys the last
//! wins, `null` means unset, unknown keys are ignored, and decoding goes *over* what is there already.

mod write;

pub use write::{float_text, to_string};
