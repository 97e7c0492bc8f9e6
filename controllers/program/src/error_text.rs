//! What koordctl says when it cannot do what it was asked: one line with the causes that say something.

use std::error::Error;

use crate::permission::Missing;

/// The line. Where a client's error is among the causes, it is described for people, and its causes are left out.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let client = cause.downcast_ref::<kube::Error>();
        let words = client.map_or_else(|| cause.to_string(), of_client);
        // Many errors have their cause in their own text.
        if !text.contains(&words) {
            text = if text.is_empty() { words } else { format!("{text}: {words}") };
        }
        if client.is_some() {
            break;
        }
    }
    text
}

/// What came instead of an answer.
pub fn of_client(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            "the API server does not know who asks (401): the token or certificate of the kubeconfig is wrong or has ended; log in anew".to_owned()
        }
        kube::Error::Api(status) => match Missing::of(error) {
            Some(missing) => missing.to_string(),
            None if status.message.is_empty() => format!("the API server answers {}", status.code),
            None => status.message.clone(),
        },
        error => innermost(error),
    }
}

/// The last cause, which says what happened where those above say only in which layer.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    match error.source() {
        Some(cause) => innermost(cause),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_clients_layers_are_left_out() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error: anyhow::Result<()> = Err(kube::Error::Service(Box::new(refused)).into());
        let error = error.context("the nodes cannot be listed").unwrap_err();
        assert_eq!(in_words(&error), "the nodes cannot be listed: connection refused");
        let status = kube::core::Status::failure("Unauthorized", "Unauthorized").with_code(401).boxed();
        assert!(in_words(&kube::Error::Api(status).into()).contains("log in anew"));
    }
}
