//! The grammar of every attribute of ours: `word`, `word = value` and `word(…)`, separated by commas.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Expr, LitBool, LitInt, LitStr, Path, Token, Type,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
};

use crate::{json::Json, report::Report};

/// One word of an attribute with what follows it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) word: Ident,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The word stands alone.
    Nothing,
    /// `= tokens`
    Equals(TokenStream),
    /// `(tokens)`
    List(TokenStream),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let word = input
            .call(<Ident as syn::ext::IdentExt>::parse_any)
            .map_err(|error| syn::Error::new(error.span(), "expected a word without quotes"))?;
        if input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in input);
            return Ok(Entry { word, value: Value::List(ungrouped(content.parse()?)) });
        }
        if !input.peek(Token![=]) {
            return Ok(Entry { word, value: Value::Nothing });
        }
        input.parse::<Token![=]>()?;
        // A comma between the arguments of a type ends nothing.
        let (mut tokens, mut angles) = (TokenStream::new(), 0_usize);
        while !input.is_empty() && (angles > 0 || !input.peek(Token![,])) {
            if angles == 0 && !tokens.is_empty() && begins(input) {
                return Err(input.error("a comma is missing before this word"));
            }
            let token = input.parse::<TokenTree>()?;
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == '<' => angles += 1,
                TokenTree::Punct(punct) if punct.as_char() == '>' => angles = angles.saturating_sub(1),
                _ => {}
            }
            tokens.extend([token]);
        }
        if tokens.is_empty() {
            return Err(syn::Error::new(word.span(), format!("`{word} =` needs a value")));
        }
        Ok(Entry { word, value: Value::Equals(ungrouped(tokens)) })
    }
}

/// Whether `word =` comes next.
fn begins(input: ParseStream<'_>) -> bool {
    input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) && !input.peek2(Token![=>])
}

/// Parses `a, b = 1, c(…)`.
pub(crate) fn entries(tokens: TokenStream) -> syn::Result<Vec<Entry>> {
    Ok(Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)?.into_iter().collect())
}

/// All entries of the attributes with one name.
pub(crate) fn from_attributes(attributes: &[syn::Attribute], name: &str, report: &Report) -> Vec<Entry> {
    let mut found = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        match &attribute.meta {
            syn::Meta::List(list) => found.extend(report.keep(entries(list.tokens.clone())).unwrap_or_default()),
            other => report.on(other, format!("expected `#[{name}(…)]`")),
        }
    }
    found
}

impl Entry {
    pub(crate) fn name(&self) -> String {
        let name = self.word.to_string();
        name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
    }

    pub(crate) fn span(&self) -> Span {
        self.word.span()
    }

    /// The word stands alone, or says `= true`. `= false` is the same as not being there.
    pub(crate) fn flag(&self) -> syn::Result<bool> {
        match &self.value {
            Value::Nothing => Ok(true),
            Value::Equals(tokens) => Ok(self.wants::<LitBool>(tokens, "`true` or `false`")?.value),
            Value::List(_) => Err(self.wrong(&format!("`{}` stands alone", self.word))),
        }
    }

    pub(crate) fn string(&self) -> syn::Result<LitStr> {
        self.equals("a text in quotes")
    }

    pub(crate) fn unsigned(&self) -> syn::Result<u64> {
        const WHAT: &str = "a whole number from 0 up";
        let literal: LitInt = self.equals(WHAT)?;
        literal.base10_parse().map_err(|error| self.at_value(&error, WHAT))
    }

    pub(crate) fn signed(&self) -> syn::Result<i64> {
        match self.json()? {
            Json::Number(number) => number.as_i64().ok_or_else(|| self.wrong("needs a whole number")),
            _ => Err(self.wrong(&format!("`{}` needs a whole number, as in `{} = 1`", self.word, self.word))),
        }
    }

    pub(crate) fn json(&self) -> syn::Result<Json> {
        let example = "a literal, as in `= 1`, `= \"text\"` or `= [\"a\"]`";
        match &self.value {
            Value::Equals(tokens) => syn::parse2(tokens.clone()),
            _ => Err(self.wrong(&format!("`{}` needs {example}", self.word))),
        }
    }

    /// `word = path` or `word(path)`, of a function.
    pub(crate) fn path(&self) -> syn::Result<Path> {
        self.path_to("the path of a function")
    }

    /// `word = path` or `word(path)`.
    pub(crate) fn path_to(&self, what: &str) -> syn::Result<Path> {
        match &self.value {
            Value::Equals(tokens) | Value::List(tokens) => self.wants(tokens, what),
            Value::Nothing => Err(self.wrong(&format!("`{}` needs {what}, as in `{}(path)`", self.word, self.word))),
        }
    }

    /// `word = Type`.
    pub(crate) fn type_(&self) -> syn::Result<Type> {
        self.equals("a type")
    }

    /// `word = expression`.
    pub(crate) fn expression(&self) -> syn::Result<Expr> {
        self.equals("an expression")
    }

    /// The words inside `word(…)`.
    pub(crate) fn list(&self) -> syn::Result<Vec<Entry>> {
        entries(self.list_tokens()?)
    }

    /// The tokens inside `word(…)`.
    pub(crate) fn list_tokens(&self) -> syn::Result<TokenStream> {
        match &self.value {
            Value::List(tokens) => Ok(tokens.clone()),
            _ => Err(self.wrong(&format!("`{}` takes a list, as in `{}(…)`", self.word, self.word))),
        }
    }

    /// Literals inside `word(…)`.
    pub(crate) fn literals(&self) -> syn::Result<Vec<Json>> {
        let parser = Punctuated::<Json, Token![,]>::parse_terminated;
        Ok(parser.parse2(self.list_tokens()?)?.into_iter().collect())
    }

    /// `word = "text"`, `word("a", "b")` or `word = ["a", "b"]`.
    pub(crate) fn strings(&self) -> syn::Result<Vec<LitStr>> {
        let parser = Punctuated::<LitStr, Token![,]>::parse_terminated;
        let tokens = match &self.value {
            Value::Nothing => return Err(self.wrong(&format!("`{}` needs one or more texts", self.word))),
            Value::List(tokens) => tokens.clone(),
            Value::Equals(tokens) => bracketed(tokens).unwrap_or_else(|| tokens.clone()),
        };
        let strings = parser.parse2(tokens).map_err(|error| self.at_value(&error, "texts"))?;
        Ok(strings.into_iter().collect())
    }

    /// `word = "text"`, or `word("a", "b", part = value)`: texts, and the parts after them.
    pub(crate) fn strings_and_parts(&self) -> syn::Result<(Vec<LitStr>, Vec<Entry>)> {
        let Value::List(tokens) = &self.value else { return Ok((self.strings()?, Vec::new())) };
        texts_then_parts.parse2(tokens.clone()).map_err(|error| self.at_value(&error, "texts"))
    }

    /// `word = [A, B]`, `word(A, B)` or `word = A`.
    pub(crate) fn idents(&self) -> syn::Result<Vec<Ident>> {
        let parser = Punctuated::<Ident, Token![,]>::parse_terminated;
        let tokens = match &self.value {
            Value::Nothing => return Err(self.wrong(&format!("`{}` needs a list of words", self.word))),
            Value::List(tokens) => tokens.clone(),
            Value::Equals(tokens) => bracketed(tokens).unwrap_or_else(|| tokens.clone()),
        };
        Ok(parser.parse2(tokens).map_err(|error| self.at_value(&error, "words without quotes"))?.into_iter().collect())
    }

    /// A mistake at the word itself.
    pub(crate) fn wrong(&self, message: &str) -> syn::Error {
        syn::Error::new(self.word.span(), message)
    }

    fn equals<T: Parse>(&self, what: &str) -> syn::Result<T> {
        match &self.value {
            Value::Equals(tokens) => self.wants(tokens, what),
            _ => Err(self.wrong(&format!("`{}` needs {what}, as in `{} = …`", self.word, self.word))),
        }
    }

    fn wants<T: Parse>(&self, tokens: &TokenStream, what: &str) -> syn::Result<T> {
        syn::parse2(tokens.clone()).map_err(|error| self.at_value(&error, what))
    }

    fn at_value(&self, error: &syn::Error, what: &str) -> syn::Error {
        syn::Error::new(error.span(), format!("`{}` needs {what}", self.word))
    }
}

/// `"a", "b", part = value`.
fn texts_then_parts(input: ParseStream<'_>) -> syn::Result<(Vec<LitStr>, Vec<Entry>)> {
    let mut texts = Vec::new();
    while input.peek(LitStr) {
        texts.push(input.parse()?);
        if input.is_empty() {
            break;
        }
        input.parse::<Token![,]>()?;
    }
    Ok((texts, Punctuated::<Entry, Token![,]>::parse_terminated(input)?.into_iter().collect()))
}

/// What a `macro_rules!` passes on as one piece, without the group around it.
fn ungrouped(tokens: TokenStream) -> TokenStream {
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => ungrouped(group.stream()),
        _ => tokens,
    }
}

/// Whether a text is a name of DNS in lower case.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.split('.').all(is_label)
}

fn bracketed(tokens: &TokenStream) -> Option<TokenStream> {
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Bracket => Some(group.stream()),
        _ => None,
    }
}

impl ToTokens for Entry {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.word.to_tokens(tokens);
    }
}
