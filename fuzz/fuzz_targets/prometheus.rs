#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| loadline_api::fuzz::fuzz_prometheus(data));
