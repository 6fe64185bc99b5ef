//! Fuzzes the reader of menus and questions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::menu(bytes));
