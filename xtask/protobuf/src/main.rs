//! Makes Rust of protobuf messages: `loadline-protobuf FOLDER_OF_PROTOS FOLDER_TO_WRITE`.
//!
//! There is a folder per schema, and in it one file per package, named by the last word of it; for a server that tells
//! about itself, the descriptors are there, too.

use std::error::Error;
use std::path::{Path, PathBuf};
use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(protos), Some(out)) = (args.next(), args.next()) else {
        return Err("expected two folders: where the messages are, and where to write".into());
    };
    let (estimator, cri) = (out.join("estimator/generated"), out.join("cri/generated"));
    let set = protox::compile(["estimator.proto", "service.proto", "kubernetes.proto"], [&protos])?;
    std::fs::create_dir_all(&estimator)?;
    std::fs::write(estimator.join("descriptors.bin"), set.encode_to_vec())?;
    tonic_prost_build::configure()
        .out_dir(&estimator)
        // Keys in order, as other writers have them: the same message is the same bytes.
        .btree_map(".")
        // An empty component takes two bytes on the wire; it should not take hundreds in memory.
        .boxed(".github.com.karmada_io.karmada.pkg.estimator.pb.Component.replicaRequirements")
        .boxed(".github.com.karmada_io.karmada.pkg.estimator.pb.AssumedWorkload.workload")
        .compile_fds(set)?;
    shorten(&estimator)?;
    std::fs::create_dir_all(&cri)?;
    let set = protox::compile(["cri.proto"], [&protos])?;
    tonic_prost_build::configure().out_dir(&cri).btree_map(".").compile_fds(set)?;
    shorten(&cri)
}

/// `a.b.c.rs` becomes `c.rs`.
fn shorten(out: &Path) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(out)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if let (Some("rs"), Some((_, last))) =
            (path.extension().and_then(|e| e.to_str()), stem.rsplit_once('.'))
        {
            std::fs::rename(&path, out.join(format!("{last}.rs")))?;
        }
    }
    Ok(())
}
