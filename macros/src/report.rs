//! Collects every mistake of one expansion, so that all of them are shown at once.

use std::cell::RefCell;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// The mistakes found so far. Parsing and checking go on after each of them.
#[derive(Default)]
pub(crate) struct Report {
    mistakes: RefCell<Vec<syn::Error>>,
}

impl Report {
    /// Notes a mistake at one place.
    pub(crate) fn at(&self, span: Span, message: impl Into<String>) {
        self.add(syn::Error::new(span, message.into()));
    }

    /// Notes a mistake at some tokens.
    pub(crate) fn on(&self, tokens: impl ToTokens, message: impl Into<String>) {
        self.add(syn::Error::new_spanned(tokens, message.into()));
    }

    /// Notes a mistake that a parser found.
    pub(crate) fn add(&self, error: syn::Error) {
        self.mistakes.borrow_mut().push(error);
    }

    /// The value, or none after noting why there is none.
    pub(crate) fn keep<T>(&self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.mistakes.borrow().is_empty()
    }

    /// One `compile_error!` per mistake; empty when nothing is wrong.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.mistakes.into_inner().iter().map(syn::Error::to_compile_error).collect()
    }
}

/// The same tokens, each standing at `span`, so that what the compiler says of them points there.
pub(crate) fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let respan = |mut tree: TokenTree| {
        if let TokenTree::Group(group) = &tree {
            tree = TokenTree::Group(Group::new(group.delimiter(), respanned(group.stream(), span)));
        }
        // The context of the token's own place stays, so that names keep their meaning.
        tree.set_span(tree.span().located_at(span));
        tree
    };
    tokens.into_iter().map(respan).collect()
}
