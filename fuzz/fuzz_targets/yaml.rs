#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| loadline_manifests::fuzz::fuzz_yaml(data));
