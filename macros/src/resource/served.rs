//! How the versions of a kind are served: `served`, `storage`, `deprecated` and `skip_version`, on the root for the
//! type's own version and inside of `older(…)` for one before it.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{LitStr, Path};

use super::root::{Root, once};
use crate::{
    change::{rank, version},
    entry::Entry,
    report::Report,
    words::{self, root::OLDER},
};

/// Whether and how one version is served.
#[derive(Default)]
pub(super) struct Serving {
    served: Option<bool>,
    storage: Option<bool>,
    deprecated: Option<String>,
    skipped: Option<bool>,
}

/// An older version that is served otherwise than older versions are.
pub(super) struct Older {
    span: Span,
    version: LitStr,
    serving: Serving,
}

impl Serving {
    /// Takes one of the words; others are none of its business.
    pub(super) fn take(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "served" => once(&mut self.served, entry, entry.flag()),
            "storage" => once(&mut self.storage, entry, entry.flag()),
            "skip_version" => once(&mut self.skipped, entry, entry.flag()),
            "deprecated" => {
                let warning =
                    if entry.flag().is_ok() { Ok(String::new()) } else { entry.string().map(|text| text.value()) };
                once(&mut self.deprecated, entry, warning)
            }
            _ => Ok(()),
        }
    }

    fn is_skipped(&self) -> bool {
        self.skipped == Some(true)
    }

    /// The constant `Served`.
    fn expand(&self, krate: &Path, stored_by_default: bool) -> TokenStream {
        let (served, storage) = (self.served.unwrap_or(true), self.storage.unwrap_or(stored_by_default));
        let deprecated = self.deprecated.as_ref().map_or_else(|| quote!(None), |warning| quote!(Some(#warning)));
        let skipped = self.is_skipped();
        quote!(#krate::Served { served: #served, storage: #storage, deprecated: #deprecated, skipped: #skipped })
    }
}

impl Older {
    pub(super) fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &[&OLDER])?;
        let named = parts.iter().find(|part| part.name() == "version");
        let named = named.ok_or_else(|| entry.wrong("`older` needs `version = \"v1alpha1\"`"))?;
        version(named)?;
        let mut serving = Serving::default();
        for part in &parts {
            serving.take(part)?;
        }
        Ok(Older { span: entry.span(), version: named.string()?, serving })
    }

    fn is_stored(&self) -> bool {
        self.serving.storage == Some(true)
    }
}

/// The constants of the type's own version and of the older ones.
pub(super) fn expand(krate: &Path, root: &Root) -> (TokenStream, TokenStream) {
    let own = root.serving.expand(krate, !root.older.iter().any(Older::is_stored));
    let older = root.older.iter().map(|Older { version, serving, .. }| {
        let served = serving.expand(krate, false);
        quote!(#krate::Older { version: #version, served: #served })
    });
    (own, quote!(&[#(#older),*]))
}

/// Notes versions that are not older, are named twice, or cannot be stored.
pub(super) fn check(root: &Root, report: &Report) {
    let newest = root.version.as_ref().map(LitStr::value);
    let mut stored = (root.serving.storage == Some(true)).then(|| newest.clone().unwrap_or_default());
    for (index, older) in root.older.iter().enumerate() {
        let name = older.version.value();
        if let Some(newest) = newest.as_ref().filter(|newest| rank(&name) >= rank(newest)) {
            report.on(
                &older.version,
                format!("`{name}` does not come before `{newest}`, the version of the type; `older` names one that does, as `v1alpha1` comes before `v1beta1` and `v1`"),
            );
        }
        if root.older[..index].iter().any(|earlier| earlier.version.value() == name) {
            report.on(
                &older.version,
                format!("`{name}` is given twice; one `older` says all, as in `older(version = \"{name}\", served = false, deprecated)`"),
            );
        }
        if !older.is_stored() {
            continue;
        }
        if let Some(other) = &stored {
            report.at(
                older.span,
                format!("objects are stored in one version, and `{other}` says `storage` too; leave it at one of them"),
            );
        }
        if older.serving.is_skipped() {
            report.at(older.span, SKIPPED_STORAGE);
        }
        stored = Some(name);
    }
    let is_elsewhere = root.older.iter().any(Older::is_stored);
    if let Some(version) = root.version.as_ref().filter(|_| root.serving.is_skipped() && !is_elsewhere) {
        report.on(version, SKIPPED_STORAGE);
    }
}

const SKIPPED_STORAGE: &str = "`skip_version` leaves the version out of the CustomResourceDefinition, so objects are stored in another; mark that one, as in `older(version = \"v1beta1\", storage)`";
