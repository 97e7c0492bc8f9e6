//! Functions that an attribute names, with the type that they are needed with.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Path, spanned::Spanned};

use crate::report::respanned;

/// The function as a pointer of that type, so that a function of another one is an error where it is named.
pub(crate) fn pointer(path: &Path, type_: TokenStream) -> TokenStream {
    let type_ = respanned(type_, path.span());
    quote!({
        let function: #type_ = #path;
        function
    })
}
