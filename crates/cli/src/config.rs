//! `loadline config`: what a scheduler's configuration comes to, with every default filled in.

use crate::args::ConfigPrint;
use crate::out;
use anyhow::Result;
use loadline_api::scheduler::{Configuration, write};
use loadline_manifests::{ConfigurationInput, Manifests};
use std::path::Path;

/// Prints a configuration, or the default one, so that it can be read back.
///
/// # Errors
/// Bad input.
pub fn print(args: &ConfigPrint) -> Result<()> {
    let configuration = match &args.file {
        Some(path) => read(path)?,
        None => Configuration::default(),
    };
    let document = write(&configuration);
    match args.output {
        Format::Json => out::line(&serde_json::to_string_pretty(&document)?),
        Format::Yaml => out::print(&serde_saphyr::to_string(&document)?),
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    #[default]
    Yaml,
    Json,
}

/// Reads a configuration; what is odd goes to the log.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(path: &Path) -> Result<Configuration> {
    let manifests = Manifests::read(&[path.to_owned()], ConfigurationInput::KINDS);
    let ConfigurationInput { configuration, warnings } = ConfigurationInput::read(manifests)?;
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    Ok(configuration)
}

/// The same from a text.
///
/// # Errors
/// Everything that is wrong with it, in one text.
pub fn parse(text: &str) -> Result<Configuration, String> {
    let manifests = Manifests::parse("configuration", text, ConfigurationInput::KINDS);
    let ConfigurationInput { configuration, warnings } =
        ConfigurationInput::read(manifests).map_err(|problems| problems.to_string())?;
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    Ok(configuration)
}
