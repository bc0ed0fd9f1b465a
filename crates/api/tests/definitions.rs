//! Are the definitions in the repository what the types say?

use loadline_api::schema;
use std::fs;
use std::path::Path;

#[test]
fn the_files_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let made = schema::files().unwrap();
    for (name, text) in &made {
        let there = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(there == *text, "{name} is not what its types say; run `{}`", schema::COMMAND);
    }
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    for name in names {
        assert!(made.iter().any(|(made, _)| name == made.as_str()), "nothing makes {}", name.display());
    }
}

#[test]
fn each_file_says_who_made_it_and_reads_as_what_was_written() {
    for (name, text) in schema::files().unwrap() {
        let (first, _) = text.split_once('\n').unwrap();
        assert!(first.starts_with("# Generated") && first.ends_with(schema::COMMAND), "{name}: {first}");
        let read: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read["kind"], "CustomResourceDefinition", "{name}");
        assert!(!text.contains("nullable: false") && !text.contains("title:"), "{name}");
    }
}
