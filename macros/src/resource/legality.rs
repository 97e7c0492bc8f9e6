//! `test`: a test that API servers accept the definition of a kind, in the versions that its root names.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use super::Root;
use crate::model::Item;

/// The test; none where the root does not ask for one.
pub(super) fn expand(item: &Item<'_>, root: &Root) -> Option<TokenStream> {
    if !root.is_tested {
        return None;
    }
    let (ident, krate) = (item.ident, &item.krate);
    let name = format_ident!("the_definition_of_{}_is_legal", ident.unraw().to_string().to_lowercase());
    Some(quote! {
        #[cfg(test)]
        #[::core::prelude::v1::test]
        fn #name() {
            #krate::document::assert_legal::<#ident>();
        }
    })
}
