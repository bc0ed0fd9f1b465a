//! What is said of a Prometheus on the command line, by whoever asks one.

use anyhow::{Result, bail};
use clap::Args;
use http::{HeaderName, HeaderValue};
use loadline_services::sources::prometheus::{Auth, Headers, Target};
use std::path::PathBuf;

/// What it wants to see.
#[derive(Debug, Args)]
pub struct Credentials {
    /// File with a token to send; read for every request
    #[arg(long, value_name = "FILE", requires = "prometheus_address")]
    pub prometheus_bearer_token_file: Option<PathBuf>,
    /// File with `user:password`; read for every request
    #[arg(
        long,
        value_name = "FILE",
        requires = "prometheus_address",
        conflicts_with = "prometheus_bearer_token_file"
    )]
    pub prometheus_basic_auth_file: Option<PathBuf>,
    /// Certificates of the authorities to trust, as PEM
    #[arg(long, value_name = "FILE", requires = "prometheus_address")]
    pub prometheus_ca_file: Option<PathBuf>,
    /// Our certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "prometheus_key_file")]
    pub prometheus_cert_file: Option<PathBuf>,
    /// Its key, as PEM
    #[arg(long, value_name = "FILE", requires = "prometheus_cert_file")]
    pub prometheus_key_file: Option<PathBuf>,
    /// Header to send, such as `X-Scope-OrgID: team-a`; may be given several times
    #[arg(long = "prometheus-header", value_name = "NAME: VALUE", value_parser = header, requires = "prometheus_address")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Credentials {
    /// The same address, with them.
    ///
    /// # Errors
    /// All files that cannot be used.
    pub async fn target(&self, at: &Target) -> Result<Target> {
        let auth = match (&self.prometheus_bearer_token_file, &self.prometheus_basic_auth_file) {
            (Some(file), _) => Auth::Bearer(file.clone()),
            (None, Some(file)) => Auth::Basic(file.clone()),
            (None, None) => Auth::Nobody,
        };
        let target = Target {
            auth,
            authority: self.prometheus_ca_file.clone(),
            certificate: self.prometheus_cert_file.clone().zip(self.prometheus_key_file.clone()),
            headers: Headers(self.headers.clone()),
            ..at.clone()
        };
        if let Err(problems) = target.check().await {
            bail!("prometheus: {}", problems.replace('\n', "\nprometheus: "));
        }
        Ok(target)
    }
}

/// `label="text"`, with any of the four operators.
pub fn matcher(text: &str) -> Result<String, String> {
    let expected = || "expected LABEL=\"TEXT\", or with != or =~ or !~".to_owned();
    let end = text.find(['=', '!']).ok_or_else(expected)?;
    let (label, rest) = text.split_at(end);
    let operator = ["=~", "!=", "!~", "="]
        .into_iter()
        .find(|operator| rest.starts_with(operator))
        .ok_or_else(expected)?;
    let named = !label.is_empty()
        && !label.starts_with(|c: char| c.is_ascii_digit())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = &rest[operator.len()..];
    let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    let inner = value.get(1..value.len().saturating_sub(1)).unwrap_or_default();
    let unescaped = inner.replace("\\\\", "").replace("\\\"", "").contains('"');
    if named && quoted && !unescaped { Ok(text.to_owned()) } else { Err(expected()) }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let expected = || "expected NAME: VALUE".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(expected)?;
    let name = name.trim().parse().map_err(|_| expected())?;
    let mut value: HeaderValue = value.trim().parse().map_err(|_| expected())?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_a_label_an_operator_and_a_quoted_text() {
        for (text, good) in [
            (r#"cluster="a""#, true),
            (r#"job=~"node.*""#, true),
            (r#"job!="x""#, true),
            (r#"job!~"x\"y""#, true),
            ("cluster=a", false),
            (r#"="a""#, false),
            (r#"1x="a""#, false),
            (r#"a="b"} or vector(1) #""#, false),
            (r#"a="b", c="d""#, false),
            ("cluster", false),
        ] {
            assert_eq!(matcher(text).is_ok(), good, "{text}");
        }
    }
}
