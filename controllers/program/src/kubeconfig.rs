//! Which API server a program talks to: a kubeconfig, or the service account of its pod.

use std::{io, path::Path};

use http::Uri;
use kube::{
    Config,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::in_one_line;

/// Where a program looks for its API server.
#[derive(Clone, Debug, Default)]
pub struct Selection<'a> {
    /// The kubeconfig that a flag names; without it $KUBECONFIG, ~/.kube/config or the pod's service account.
    pub file: Option<&'a Path>,
    /// The context that a flag names; without it the current one.
    pub context: Option<&'a str>,
}

/// Why there is no configuration. The text names the problem, [`ConfigError::remedy`] what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No file and no service account.
    #[error("no cluster is known: {0}")]
    NotFound(String),
    /// The file that was named is absent, or not readable for this user.
    #[error("{file} cannot be read: {reason}")]
    Read {
        /// The kubeconfig, as messages name it.
        file: String,
        /// What the operating system said.
        reason: String,
    },
    /// It has no context at all.
    #[error("{0} names no cluster: it has no context")]
    NoContexts(String),
    /// No context was asked for, and none is the current one.
    #[error("{file} has no current context")]
    NoCurrentContext {
        /// The kubeconfig, as messages name it.
        file: String,
        /// The contexts that it has.
        contexts: Vec<String>,
    },
    /// The context does not exist.
    #[error("{file} has no context {context:?}")]
    UnknownContext {
        /// The kubeconfig, as messages name it.
        file: String,
        /// The context that was asked for.
        context: String,
        /// The contexts that it has.
        contexts: Vec<String>,
    },
    /// The context's cluster does not exist.
    #[error("{file} has no cluster {cluster:?}, which its context names")]
    UnknownCluster {
        /// The kubeconfig, as messages name it.
        file: String,
        /// The cluster of the context.
        cluster: String,
    },
    /// It is no kubeconfig, or what it says cannot be used.
    #[error("{file} cannot be used: {reason}")]
    Invalid {
        /// The kubeconfig, as messages name it.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ConfigError {
    /// What a user of a program with the flag `--kubeconfig` can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::NotFound(_) => "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account".to_owned(),
            Self::NoCurrentContext { contexts, .. } => {
                format!("set its current-context to one of: {}", contexts.join(", "))
            }
            Self::UnknownContext { contexts, .. } => format!("name one of: {}", contexts.join(", ")),
            Self::Read { .. } | Self::NoContexts(_) | Self::UnknownCluster { .. } | Self::Invalid { .. } => {
                "fix it, or name another with --kubeconfig".to_owned()
            }
        }
    }
}

/// The URL of an API server, as a flag names it. The error starts with the text, for the name of the flag before it.
pub fn server_url(text: &str) -> Result<Uri, String> {
    let url = text.parse().ok().filter(is_server);
    url.ok_or_else(|| {
        format!(
            "{text:?} is no URL of an API server; write one with http:// or https:// and a host, such as https://10.0.0.1:6443"
        )
    })
}

/// Whether requests can be sent to a URL. To others kube panics when it sends the first.
fn is_server(url: &Uri) -> bool {
    let has_host = url.authority().is_some_and(|authority| {
        let host = authority.host();
        let is_alone = authority.as_str().ends_with(host);
        !host.is_empty() && (is_alone || authority.port_u16().is_some())
    });
    has_host && matches!(url.scheme_str(), Some("http" | "https"))
}

/// The configuration of a selection.
pub async fn config(selection: &Selection<'_>) -> Result<Config, ConfigError> {
    if let Some(file) = selection.file {
        return from_file(file, selection.context).await;
    }
    match Kubeconfig::read() {
        Ok(kubeconfig) => of_kubeconfig("the kubeconfig", kubeconfig, selection.context).await,
        // Pods have no file; a context exists only in one.
        Err(error) if selection.context.is_none() && is_absent(&error) => Config::incluster().map_err(|in_cluster| {
            let reason = reason(&error);
            ConfigError::NotFound(match in_cluster {
                InClusterError::ReadEnvironmentVariable(_) => reason,
                invalid => format!("{reason}, and the pod's service account cannot be used: {invalid}"),
            })
        }),
        Err(error) => Err(unreadable("the kubeconfig".to_owned(), &error)),
    }
}

/// The configuration of a kubeconfig file, by this context or its current one.
pub async fn from_file(file: &Path, context: Option<&str>) -> Result<Config, ConfigError> {
    let name = format!("the kubeconfig {}", file.display());
    match Kubeconfig::read_from(file) {
        Ok(kubeconfig) => of_kubeconfig(&name, kubeconfig, context).await,
        Err(error) => Err(unreadable(name, &error)),
    }
}

async fn of_kubeconfig(name: &str, kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Config, ConfigError> {
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let cluster = cluster(&kubeconfig, context).unwrap_or_default();
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let configured = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let file = name.to_owned();
    let config = configured.map_err(|error| match error {
        KubeconfigError::CurrentContextNotSet if contexts.is_empty() => ConfigError::NoContexts(file),
        KubeconfigError::CurrentContextNotSet => ConfigError::NoCurrentContext { file, contexts },
        KubeconfigError::LoadContext(context) => ConfigError::UnknownContext { file, context, contexts },
        KubeconfigError::LoadClusterOfContext(cluster) => ConfigError::UnknownCluster { file, cluster },
        error => ConfigError::Invalid { file, reason: reason(&error) },
    })?;
    if is_server(&config.cluster_url) {
        return Ok(config);
    }
    let found = config.cluster_url.to_string();
    let expected = "a URL with http:// or https:// and a host, such as https://10.0.0.1:6443";
    let reason = format!("the server of its cluster {cluster:?} must be {expected}, not {found:?}");
    Err(ConfigError::Invalid { file: name.to_owned(), reason })
}

/// The cluster of this context, or of the current one.
fn cluster(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|context| context.name == name)?;
    Some(named.context.as_ref()?.cluster.clone())
}

fn unreadable(file: String, error: &KubeconfigError) -> ConfigError {
    match error {
        KubeconfigError::ReadConfig(error, _) => ConfigError::Read { file, reason: error.to_string() },
        error => ConfigError::Invalid { file, reason: reason(error) },
    }
}

fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn reason(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => format!("{} cannot be read: {error}", path.display()),
        KubeconfigError::Parse(error) => format!("it is no YAML of a kubeconfig: {}", yaml_reason(error)),
        error => in_one_line(error),
    }
}

/// Where a text of YAML cannot be read, and why, without the text itself.
fn yaml_reason(error: &serde_saphyr::Error) -> String {
    let text = in_one_line(error.without_snippet());
    let text = text.lines().next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem and the remedy of a kubeconfig with this content.
    async fn refused(content: &str, context: Option<&str>) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, content).unwrap();
        let error = from_file(&file, context).await.err().unwrap();
        (error.to_string().replace(&file.display().to_string(), "FILE"), error.remedy())
    }

    #[tokio::test]
    async fn each_way_to_be_wrong_has_its_message() {
        let two = "contexts: [{name: a, context: {cluster: none}}, {name: b, context: {cluster: none}}]";
        for (content, context, problem, remedy) in [
            ("", None, "the kubeconfig FILE names no cluster: it has no context", "name another with --kubeconfig"),
            (two, None, "the kubeconfig FILE has no current context", "set its current-context to one of: a, b"),
            (two, Some("c"), "the kubeconfig FILE has no context \"c\"", "one of: a, b"),
            (two, Some("a"), "the kubeconfig FILE has no cluster \"none\", which its context names", "fix it"),
            (
                "{bad: [",
                None,
                "the kubeconfig FILE cannot be used: it is no YAML of a kubeconfig: unclosed bracket '[' at line 1, column 7",
                "fix it",
            ),
        ] {
            let (message, advised) = refused(content, context).await;
            assert_eq!(message, problem);
            assert!(advised.contains(remedy), "{advised}");
        }
    }

    #[tokio::test]
    async fn a_server_without_scheme_or_host_is_refused() {
        let with = |server: &str| {
            format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
                 clusters: [{{name: c, cluster: {{server: {server:?}}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
            )
        };
        for server in ["not-a-url", "10.0.0.1:6443", "ftp://10.0.0.1", "/api"] {
            let (message, advised) = refused(&with(server), None).await;
            let expected = "the server of its cluster \"c\" must be a URL with http:// or https:// and a host";
            assert!(message.starts_with(&format!("the kubeconfig FILE cannot be used: {expected}")), "{message}");
            assert!(message.contains(server) && advised.contains("fix it"), "{message}; {advised}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, with("http://10.0.0.1:6443")).unwrap();
        assert_eq!(from_file(&file, None).await.unwrap().cluster_url.host(), Some("10.0.0.1"));
    }

    #[test]
    fn a_url_of_a_flag_has_a_scheme_and_a_host() {
        for url in
            ["https://10.0.0.1:6443", "http://localhost", "https://[::1]:6443/prefix", "https://[::1]", "https://a.b/"]
        {
            assert_eq!(server_url(url).map(|_| ()), Ok(()), "{url}");
        }
        let wrong = [
            "",
            "not-a-url",
            "not a url",
            " https://a",
            "a:6443",
            "/api",
            "https://",
            "http://:6443",
            "ftp://a",
            "http://a:99999",
        ];
        for text in wrong {
            let expected = "write one with http:// or https:// and a host, such as https://10.0.0.1:6443";
            assert_eq!(server_url(text), Err(format!("{text:?} is no URL of an API server; {expected}")));
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named() {
        let error = from_file(Path::new("/nonexistent/config"), None).await.err().unwrap();
        let message = error.to_string();
        assert!(message.starts_with("the kubeconfig /nonexistent/config cannot be read: No such file"), "{message}");
    }
}
