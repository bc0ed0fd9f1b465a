#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| loadline_machinery::fuzz::fuzz_protobuf(data));
