//! The committed corpus of the fuzz target runs with the ordinary tests.

use loadline_manifests::fuzz::fuzz_yaml;

#[test]
fn the_yaml_corpus_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/yaml");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        fuzz_yaml(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count >= 20, "there are {count} seeds");
}
