//! JSON literals inside attributes: `1`, `-0.5`, `"text"`, `true`, `null`, `["a"]`, `{"a": 1}`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Ident, LitBool, LitFloat, LitInt, LitStr, Token, braced, bracketed,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// A JSON value that stands in an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// A number as it is written; integers stay exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    pub(crate) fn as_i64(self) -> Option<i64> {
        match self {
            Number::Integer(number) => i64::try_from(number).ok(),
            Number::Float(_) => None,
        }
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl Json {
    /// The word for the JSON type, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(Number::Integer(_)) => "a whole number",
            Json::Number(Number::Float(_)) => "a number with a fraction",
            Json::String(_) => "a text",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

impl Parse for Json {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let look = input.lookahead1();
        if look.peek(Token![-]) || look.peek(LitInt) || look.peek(LitFloat) {
            Ok(Json::Number(number(input)?))
        } else if look.peek(LitStr) {
            Ok(Json::String(input.parse::<LitStr>()?.value()))
        } else if look.peek(LitBool) {
            Ok(Json::Bool(input.parse::<LitBool>()?.value))
        } else if look.peek(syn::token::Bracket) {
            let content;
            bracketed!(content in input);
            Ok(Json::Array(Punctuated::<Json, Token![,]>::parse_terminated(&content)?.into_iter().collect()))
        } else if look.peek(syn::token::Brace) {
            let content;
            braced!(content in input);
            let members = Punctuated::<Member, Token![,]>::parse_terminated(&content)?;
            Ok(Json::Object(members.into_iter().map(|member| (member.name, member.value)).collect()))
        } else if input.peek(Ident) && input.fork().parse::<Ident>()? == "null" {
            input.parse::<Ident>()?;
            Ok(Json::Null)
        } else {
            Err(syn::Error::new(
                input.span(),
                "expected a JSON literal: a number, a text, true, false, null, [..] or {..}",
            ))
        }
    }
}

struct Member {
    name: String,
    value: Json,
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse::<LitStr>()?.value();
        input.parse::<Token![:]>()?;
        Ok(Member { name, value: input.parse()? })
    }
}

fn number(input: ParseStream<'_>) -> syn::Result<Number> {
    let negative = input.parse::<Option<Token![-]>>()?.is_some();
    if input.peek(LitInt) {
        let magnitude: i128 = input.parse::<LitInt>()?.base10_parse()?;
        return Ok(Number::Integer(if negative { -magnitude } else { magnitude }));
    }
    let literal = input.parse::<LitFloat>()?;
    let magnitude: f64 = literal.base10_parse()?;
    if !magnitude.is_finite() {
        return Err(syn::Error::new(literal.span(), "JSON has no such number"));
    }
    Ok(Number::Float(if negative { -magnitude } else { magnitude }))
}

/// Tokens for the macro `json!` of serde_json.
impl ToTokens for Json {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self {
            Json::Null => quote!(null),
            Json::Bool(value) => quote!(#value),
            Json::Number(number) => quote!(#number),
            Json::String(text) => quote!(#text),
            Json::Array(items) => quote!([#(#items),*]),
            Json::Object(members) => {
                let (names, values): (Vec<_>, Vec<_>) = members.iter().cloned().unzip();
                quote!({#(#names: #values),*})
            }
        });
    }
}

impl ToTokens for Number {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Number::Integer(number) => {
                let literal = match (i64::try_from(*number), u64::try_from(*number)) {
                    (Ok(number), _) => proc_macro2::Literal::i64_suffixed(number),
                    (_, Ok(number)) => proc_macro2::Literal::u64_suffixed(number),
                    _ => proc_macro2::Literal::f64_suffixed(*number as f64),
                };
                tokens.extend([proc_macro2::TokenTree::Literal(literal)]);
            }
            Number::Float(number) => {
                let mut literal = proc_macro2::Literal::f64_suffixed(*number);
                literal.set_span(Span::call_site());
                tokens.extend([proc_macro2::TokenTree::Literal(literal)]);
            }
        }
    }
}
