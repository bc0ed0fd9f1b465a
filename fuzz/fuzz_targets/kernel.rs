#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| loadline_core::fuzz::fuzz_kernel(data));
