//! `url` and `service`: where the API server finds the webhook of an entry.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{LitStr, Path};

use crate::{
    entry::Entry,
    words::{self, webhook::SERVICE},
};

/// Where the API server finds a webhook.
#[derive(Clone)]
pub(super) enum Client {
    Url(LitStr),
    Service { name: Option<LitStr>, namespace: Option<LitStr>, port: Option<u16> },
}

impl Client {
    /// What the words of one entry say of it; none where they say nothing.
    pub(super) fn find(words: &[Entry]) -> syn::Result<Option<Self>> {
        let find = |name: &str| words.iter().find(|word| word.name() == name);
        match (find("url"), find("service")) {
            (None, None) => Ok(None),
            (Some(url), None) => self::url(url).map(Some),
            (None, Some(service)) => self::service(service).map(Some),
            (Some(_), Some(service)) => Err(service.wrong(
                "an entry is called at its `url` or through its `service`; leave one of them, as in `service(name = \"webhooks\", port = 9443)`",
            )),
        }
    }

    /// The constant `Client`.
    pub(super) fn expand(&self, krate: &Path) -> TokenStream {
        let option = |text: &Option<LitStr>| text.as_ref().map_or_else(|| quote!(None), |text| quote!(Some(#text)));
        match self {
            Client::Url(url) => quote!(#krate::admission::Client::Url(#url)),
            Client::Service { name, namespace, port } => {
                let (name, namespace) = (option(name), option(namespace));
                let port = port.map_or_else(|| quote!(None), |port| quote!(Some(#port)));
                quote!(#krate::admission::Client::Service { name: #name, namespace: #namespace, port: #port })
            }
        }
    }
}

/// `url = "https://hooks.example.com/validate"`.
fn url(word: &Entry) -> syn::Result<Client> {
    let literal = word.string()?;
    let url = literal.value();
    let host = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
    if host.is_some_and(|host| !host.is_empty() && !host.contains('@')) && !url.contains(['?', '#']) {
        Ok(Client::Url(literal))
    } else {
        let message = "the API server calls `https://`, a host and a path, without user, query or fragment, as in `url = \"https://hooks.example.com/validate\"`";
        Err(syn::Error::new(literal.span(), message))
    }
}

/// `service(name = "webhooks", namespace = "system", port = 9443)`.
fn service(word: &Entry) -> syn::Result<Client> {
    let parts = word.list()?;
    words::only(&parts, &[&SERVICE])?;
    let find = |name: &str| parts.iter().find(|part| part.name() == name);
    let port = |part: &Entry| {
        let port = u16::try_from(part.unsigned()?).ok().filter(|port| *port > 0);
        port.ok_or_else(|| part.wrong("a port is 1 to 65535, as in `port = 9443`"))
    };
    if parts.is_empty() {
        return Err(
            word.wrong("`service` says how the Service differs, as in `service(name = \"webhooks\", port = 9443)`")
        );
    }
    Ok(Client::Service {
        name: find("name").map(Entry::string).transpose()?,
        namespace: find("namespace").map(Entry::string).transpose()?,
        port: find("port").map(port).transpose()?,
    })
}
