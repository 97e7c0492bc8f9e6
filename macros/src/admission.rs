//! `#[admission(…)]` on a function, `admission(…)` on a type, and `handlers![…]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Expr, FnArg, GenericArgument, ItemFn, PathArguments, Token, Type, parse::Parser, punctuated::Punctuated,
    spanned::Spanned,
};

use crate::{entry, handler::Handler, model::Item, report::Report, words};

/// The function as it is, and a constant with its name in capitals.
pub(crate) fn attribute(words: TokenStream, function: &ItemFn) -> TokenStream {
    let constant = match expand(words, function) {
        Ok(constant) => constant,
        Err(error) => error.to_compile_error(),
    };
    quote!(#function #constant)
}

fn expand(words: TokenStream, function: &ItemFn) -> syn::Result<TokenStream> {
    let (krate, words) = take_crate(entry::entries(words)?)?;
    let signature = &function.sig;
    let handler = Handler::parse(&words, signature.ident.span(), None)?;
    let wrong = || {
        syn::Error::new(
            signature.span(),
            "a handler is `fn(&Review<T>, &Snapshot) -> Verdict`, or `fn(&Request<'_>, &Snapshot) -> Verdict`",
        )
    };
    let mut inputs = signature.inputs.iter();
    let (Some(FnArg::Typed(first)), Some(FnArg::Typed(second)), None) = (inputs.next(), inputs.next(), inputs.next())
    else {
        return Err(wrong());
    };
    let (Type::Reference(first), Type::Reference(second)) = (&*first.ty, &*second.ty) else { return Err(wrong()) };
    let reviewed = reviewed(&first.elem).ok_or_else(wrong)?;
    let (ident, visibility, snapshot) = (&signature.ident, &function.vis, &second.elem);
    let decide = if let Reviewed::Object(object) = reviewed {
        quote!(match #krate::admission::Review::<#object>::decode(request) {
            Ok(review) => #krate::admission::Verdict::from(#ident(&review, snapshot)),
            Err(denial) => #krate::admission::Verdict::deny(denial),
        })
    } else {
        quote!(#krate::admission::Verdict::from(#ident(request, snapshot)))
    };
    let call = quote!(|request, snapshot| #decide);
    let object = match reviewed {
        Reviewed::Object(object) => Some(quote!(#object)),
        Reviewed::Request => None,
    };
    let value = handler.expand(&krate, object.as_ref(), &call)?;
    let constant = constant_name(ident);
    let documentation = format!("The handler [`{ident}`] with its path and its entries.");
    Ok(quote! {
        #[doc = #documentation]
        #visibility const #constant: #krate::admission::Handler<#snapshot> = #value;
    })
}

/// What a handler wants to see.
#[derive(Clone, Copy)]
enum Reviewed<'t> {
    /// The decoded objects of one type: `Review<T>`.
    Object(&'t Type),
    /// The request as it came: `Request`.
    Request,
}

/// What the first argument of a handler says; nothing where it is neither.
fn reviewed(type_: &Type) -> Option<Reviewed<'_>> {
    let Type::Path(path) = type_ else { return None };
    let last = path.path.segments.last()?;
    match last.ident.to_string().as_str() {
        "Request" => Some(Reviewed::Request),
        "Review" => {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(type_) => Some(Reviewed::Object(type_)),
                _ => None,
            })
        }
        _ => None,
    }
}

fn constant_name(function: &Ident) -> Ident {
    Ident::new(&function.to_string().trim_start_matches("r#").to_uppercase(), function.span())
}

/// `crate = path` among the words, taken out.
fn take_crate(words: Vec<entry::Entry>) -> syn::Result<(syn::Path, Vec<entry::Entry>)> {
    let (krate, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.name() == "crate");
    let krate = match krate.first() {
        Some(word) => word.path()?,
        None => syn::parse_quote!(::koord_resource),
    };
    Ok((krate, words))
}

/// A table of handlers: functions with `#[admission]` by their name, and whatever else is a `Handler`.
pub(crate) fn table(tokens: TokenStream) -> TokenStream {
    let list = match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => return error.to_compile_error(),
    };
    let elements = list.into_iter().map(|element| match element {
        Expr::Path(mut path) => {
            if let Some(last) = path.path.segments.last_mut() {
                last.ident = constant_name(&last.ident);
            }
            Expr::Path(path)
        }
        other => other,
    });
    quote!(&[#(#elements),*])
}

/// The handlers that a type derives from its own rules: `validating_handler()` and `mutating_handler()`.
pub(crate) fn derived(item: &Item<'_>, report: &Report) -> TokenStream {
    let (krate, ident) = (&item.krate, item.ident);
    let mut functions = TokenStream::new();
    for entry in item.entries.iter().filter(|entry| entry.name() == "admission") {
        let Some(parts) = report.keep(entry.list()) else { continue };
        if let Err(error) = words::only(&parts, &["mutate", "validate"]) {
            report.add(error);
            continue;
        }
        for part in &parts {
            let mutating = part.name() == "mutate";
            let handler = part.list().and_then(|words| Handler::parse(&words, part.span(), Some(mutating)));
            let Some(handler) = report.keep(handler) else { continue };
            let code = handler.code;
            let (name, call, documentation) = if mutating {
                (
                    format_ident!("mutating_handler"),
                    quote!(#krate::admission::mutate::<Self, C>),
                    "The handler that gives defaults and normalises, as the type's `Mutate` says.",
                )
            } else {
                (
                    format_ident!("validating_handler"),
                    quote!(#krate::admission::validate::<Self, C, #code>),
                    "The handler that refuses what breaks the type's admission rules.",
                )
            };
            let Some(value) = report.keep(handler.expand(krate, Some(&quote!(#ident)), &call)) else { continue };
            functions.extend(quote! {
                #[doc = #documentation]
                pub const fn #name<C: ?Sized>() -> #krate::admission::Handler<C> { #value }
            });
        }
    }
    if functions.is_empty() { functions } else { quote!(#[automatically_derived] impl #ident { #functions }) }
}
