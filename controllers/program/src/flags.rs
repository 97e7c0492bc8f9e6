//! Flags as Go programs take them, brought into the form that clap understands.
//!
//! Go's flag packages take `-name` like `--name`, `name_with_underscores` like `name-with-dashes`, and a switch
//! both bare and as `--switch=false`. Charts in the field use all of these.

pub mod accepted;

use clap::ArgAction;

use crate::gates::{Gate, Gates};

/// Rewrites Go-style arguments: `-slo_config_name x` becomes `--slo-config-name x`, `-v=4` and `-v4` become `--v=4`.
/// Everything after a lone `--`, and whatever does not start with a dash, stays as it is.
///
/// ```
/// use koord_program::flags::from_go;
/// let arguments = ["koord-manager", "-v4", "-enable_leader_election=false", "--config-namespace", "a_b"];
/// let expected = ["koord-manager", "--v=4", "--enable-leader-election=false", "--config-namespace", "a_b"];
/// assert_eq!(from_go(arguments.map(str::to_owned)), expected);
/// ```
pub fn from_go(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut verbatim = false;
    let rewrite = |argument: String| {
        verbatim |= argument == "--";
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else { return argument };
        // A value such as `-nodeslo,*` is no flag.
        let name = flag.split('=').next().unwrap_or_default();
        let named = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
        if verbatim || !named || flag == "h" {
            return argument;
        }
        let (first, rest) = flag.split_at(1);
        let is_numbered =
            !argument.starts_with("--") && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        if is_numbered {
            return format!("--{first}={rest}");
        }
        match flag.split_once('=') {
            Some((name, value)) => format!("--{}={value}", name.replace('_', "-")),
            None => format!("--{}", flag.replace('_', "-")),
        }
    };
    arguments.into_iter().map(rewrite).collect()
}

/// Reads a span of time as Go programs take it, such as `1m30s`.
pub fn span(text: &str) -> Result<std::time::Duration, String> {
    signed_span(text)?.to_std().ok_or_else(|| format!("{text:?} is less than no time"))
}

/// Reads a span of time; Go programs take negative ones, which count as no time here.
pub fn span_or_none(text: &str) -> Result<std::time::Duration, String> {
    Ok(signed_span(text)?.to_std().unwrap_or_default())
}

fn signed_span(text: &str) -> Result<koord_resource::Duration, String> {
    text.parse().map_err(|error: koord_resource::duration::ParseDurationError| error.to_string())
}

/// Reads a point in time.
#[cfg(feature = "controllers")]
pub fn time(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| "a time such as 2026-01-02T03:04:05Z".to_owned())
}

/// Reads a number of things; Go programs take negative ones, which are none.
pub fn count(text: &str) -> Result<u32, String> {
    let number: i64 = text.parse().map_err(|_| format!("{text:?} is no whole number"))?;
    Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

/// Reads a switch's value as Go does: `1`, `t`, `true`, … or `0`, `f`, `false`, ….
pub fn switch(text: &str) -> Result<bool, String> {
    crate::gates::truth(text).ok_or_else(|| format!("{text:?} is neither true nor false"))
}

/// Reads an address to listen on: `:8080` means every interface, `0` or nothing means not at all.
pub fn listen_address(text: &str) -> Result<Option<std::net::SocketAddr>, String> {
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.replacen("localhost:", "127.0.0.1:", 1) };
    full.parse().map(Some).map_err(|_| format!("{text:?} is no address to listen on; write HOST:PORT or :PORT"))
}

/// The flag `--feature-gates`, which may be repeated.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FeatureGates {
    /// Features to switch on or off, such as SomeFeature=true,AllBeta=false.
    #[arg(long, action = ArgAction::Append, value_name = "NAME=BOOL,…")]
    feature_gates: Vec<String>,
}

impl FeatureGates {
    /// Which features are on, of those that the program knows.
    pub fn check(&self, known: &'static [Gate]) -> Result<Gates, clap::Error> {
        Gates::parse(known, &self.feature_gates.join(",")).map_err(|error| wrong("feature-gates", error))
    }
}

/// The error of a flag whose value is more than a word and wrong.
pub fn wrong(flag: &str, reason: impl std::fmt::Display) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--{flag}: {reason}\n"))
}

/// klog's flags. Only the verbosity has an effect: logs go to the standard error, and rotation is the
/// work of whatever collects them. The others are accepted so that existing manifests keep working.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Klog {
    /// Verbosity of the logs: 0 to 3 information, 4 and 5 debugging, 6 and more everything.
    #[arg(long = "v", alias = "verbosity", default_value_t = 0, value_name = "LEVEL")]
    pub verbosity: u8,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    stderrthreshold: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    log_dir: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    log_file: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    log_file_max_size: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true)]
    log_backtrace_at: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    logtostderr: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    alsologtostderr: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    add_dir_header: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_output: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_headers: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_log_headers: Option<String>,
    /// Accepted for compatibility.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    legacy_stderr_threshold_behavior: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_does() {
        assert_eq!(listen_address(":8080").unwrap().unwrap().port(), 8080);
        assert_eq!(listen_address("127.0.0.1:1").unwrap().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(listen_address("0").unwrap(), None);
        assert!(listen_address("8080").unwrap_err().contains("write HOST:PORT or :PORT"));
    }

    #[test]
    fn less_than_no_time_is_none_where_it_is_taken() {
        assert_eq!(span_or_none("1m30s"), Ok(std::time::Duration::from_secs(90)));
        assert_eq!(span_or_none("-5m"), Ok(std::time::Duration::ZERO));
        assert!(span("-5m").unwrap_err().contains("less than no time") && span_or_none("5").is_err());
    }

    #[test]
    fn numbers_and_the_rest_after_two_dashes_stay() {
        let arguments = ["p", "-1", "-h", "--", "-a_b"].map(str::to_owned);
        assert_eq!(from_go(arguments.clone()), arguments);
    }
}
