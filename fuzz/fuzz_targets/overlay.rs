#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| koord_fuzz::overlay(data));
