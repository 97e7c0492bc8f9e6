//! Where a value stands: the path that its errors name.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    model::{Field, Item, Variant},
    serde::Tagging,
};

/// `code` about one field, with `at` naming it; a flattened field stands where its struct stands.
pub(super) fn of_field(field: &Field<'_>, code: TokenStream) -> TokenStream {
    if code.is_empty() || field.serde.flatten {
        return code;
    }
    let name = &field.name;
    quote!({ let at = &at.child(#name); #code })
}

/// The statement that makes `at` name the member that holds a variant, if one does.
pub(super) fn of_variant(item: &Item<'_>, variant: &Variant<'_>) -> Option<TokenStream> {
    let name = match &item.serde.tagging {
        Tagging::External => &variant.name,
        Tagging::Adjacent(_, content) => content,
        Tagging::Internal(_) | Tagging::Untagged => return None,
    };
    Some(quote!(let at = &at.child(#name);))
}
