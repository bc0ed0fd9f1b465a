#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| loadline_apiserver::fuzz::fuzz_jsonpath(data));
