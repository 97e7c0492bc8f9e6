//! Collects every mistake of one expansion, so that all of them are shown at once.

use std::cell::{Cell, RefCell};

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// The mistakes found so far. Parsing and checking go on after each of them.
#[derive(Default)]
pub(crate) struct Report {
    mistakes: RefCell<Vec<syn::Error>>,
    /// Whether a crate is missing that the code names.
    is_lacking: Cell<bool>,
    lack: RefCell<Option<syn::Error>>,
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

    /// Notes that a crate is missing that the code names; the error is none where it was said before.
    pub(crate) fn lacks(&self, error: Option<syn::Error>) {
        self.is_lacking.set(true);
        if error.is_some() {
            self.lack.replace(error);
        }
    }

    /// The code; or one `compile_error!` per mistake and what stands in for the code, so that the compiler speaks of the
    /// mistakes alone and not of every use of the item. Of a missing crate is said where nothing else is wrong.
    pub(crate) fn finish(self, code: TokenStream, stand_in: impl FnOnce(TokenStream) -> TokenStream) -> TokenStream {
        let mistakes = self.mistakes.into_inner();
        let mut errors: TokenStream = mistakes.iter().map(syn::Error::to_compile_error).collect();
        match (mistakes.is_empty(), self.is_lacking.get()) {
            (true, false) => return code,
            (true, true) => errors.extend(self.lack.into_inner().map(|lack| lack.to_compile_error())),
            (false, true) => {}
            (false, false) => errors.extend(stand_in(code)),
        }
        errors
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

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn finished(report: Report) -> String {
        report.finish(quote!(code), |code| quote!(instead of #code)).to_string()
    }

    #[test]
    fn a_missing_crate_is_said_where_nothing_else_is_wrong() {
        let lack = || Some(syn::Error::new(Span::call_site(), "no crate"));
        assert_eq!(finished(Report::default()), "code");
        let report = Report::default();
        report.lacks(lack());
        report.lacks(None);
        let text = finished(report);
        assert!(text.contains("no crate") && !text.contains("code"), "{text}");
        let report = Report::default();
        report.lacks(None);
        assert_eq!(finished(report), "");
        let report = Report::default();
        report.at(Span::call_site(), "a mistake");
        let text = finished(report);
        assert!(text.contains("a mistake") && text.ends_with("instead of code"), "{text}");
        let report = Report::default();
        report.at(Span::call_site(), "a mistake");
        report.lacks(lack());
        let text = finished(report);
        assert!(text.contains("a mistake") && !text.contains("no crate") && !text.contains("instead"), "{text}");
    }
}
