//! `#[admission(…)]` on a function, `admission(…)` on a type, and `handlers![…]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Expr, FnArg, GenericArgument, ItemFn, Path, PathArguments, Signature, Token, Type, parse::Parser,
    punctuated::Punctuated, spanned::Spanned,
};

use crate::{
    entry::{self, Entry},
    handler::Handler,
    model::Item,
    names,
    rbac::Permissions,
    report::Report,
    shape::{ungrouped, ungrouped_expression},
    words::{
        self,
        webhook::{BESIDE, HANDLERS},
    },
};

/// The function as it is, and a constant with its name in capitals.
pub(crate) fn attribute(words: TokenStream, function: &ItemFn) -> TokenStream {
    let report = Report::default();
    let constant = report.keep(expand(words, function, &report)).unwrap_or_default();
    let constant = report.finish(constant, |_| TokenStream::new());
    quote!(#function #constant)
}

fn expand(words: TokenStream, function: &ItemFn, report: &Report) -> syn::Result<TokenStream> {
    let words = entry::entries(words)?;
    let krate = names::resource(&words, report);
    let (beside, words): (Vec<Entry>, Vec<Entry>) = words.into_iter().partition(|word| BESIDE.has(&word.name()));
    let path = |name: &str| beside.iter().find(|word| word.name() == name).map(Entry::path).transpose();
    let (within, declared) = (path("within")?, path("declared")?);
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let Arguments { reviewed, snapshot, adds_errors } = Arguments::of(&function.sig)?;
    // The snapshot of the whole table, of which the function sees a part.
    let (table, part) = match (&within, snapshot) {
        (Some(path), _) => (owner(path)?, quote!(#path(snapshot))),
        (None, Type::Reference(snapshot)) => {
            let snapshot = &snapshot.elem;
            (quote!(#snapshot), quote!(snapshot))
        }
        (None, view) => {
            let message = "a handler sees `&Snapshot`; a view by value needs `within = Snapshot::view`";
            return Err(syn::Error::new(view.span(), message));
        }
    };
    let decide = match (reviewed, adds_errors, &declared) {
        (Reviewed::Object(object), true, Some(declared)) => {
            quote!(#krate::admission::validate_with::<#object>(request, &#declared, |review, errors| {
                #ident(review, #part, errors);
            }))
        }
        (_, true, _) => {
            let message = "a function that adds errors to a type's own rules needs `declared = Type::VALIDATING`";
            return Err(syn::Error::new(function.sig.span(), message));
        }
        (Reviewed::Object(object), false, _) => quote!(match #krate::admission::Review::<#object>::decode(request) {
            Ok(review) => #krate::admission::Verdict::from(#ident(&review, #part)),
            Err(denial) => #krate::admission::Verdict::deny(denial),
        }),
        (Reviewed::Request, false, _) => quote!(#krate::admission::Verdict::from(#ident(request, #part))),
    };
    let call = quote!(|request, snapshot| #decide);
    let value = if let Some(declared) = declared {
        attached(&krate, &declared, &words, &call)?
    } else {
        let object = match reviewed {
            Reviewed::Object(object) => Some(quote!(#object)),
            Reviewed::Request => None,
        };
        Handler::parse(&words, ident.span(), None)?.expand(&krate, object.as_ref(), &call)?
    };
    let constant = constant_name(ident);
    let documentation = format!("The handler [`{ident}`] with its path and its entries.");
    Ok(quote! {
        #[doc = #documentation]
        #visibility const #constant: #krate::admission::Handler<#table> = #value;
    })
}

/// A function that decides for a handler which a type declares; what its snapshot reads stands beside it.
fn attached(krate: &Path, declared: &Path, words: &[Entry], call: &TokenStream) -> syn::Result<TokenStream> {
    if let Some(word) = words.iter().find(|word| word.name() != "rbac") {
        return Err(word
            .wrong(&format!("the type declares `{}`; beside `declared` stand `within` and `rbac` alone", word.word)));
    }
    let permissions = words.iter().map(Permissions::parse).collect::<syn::Result<Vec<_>>>()?;
    let rules: Vec<TokenStream> = permissions.iter().flat_map(|permissions| permissions.expand(krate)).collect();
    let handler = quote!(#declared.decided_by(#call));
    Ok(if rules.is_empty() { handler } else { quote!(#krate::admission::Handler { rbac: &[#(#rules),*], ..#handler }) })
}

/// The type whose function a path names: `Caches` of `Caches::nodes`.
fn owner(path: &Path) -> syn::Result<TokenStream> {
    let mut owner = path.clone();
    owner.segments.pop();
    owner.segments.pop_punct();
    if owner.segments.is_empty() {
        return Err(syn::Error::new_spanned(
            path,
            "`within` names a function of the table's snapshot, as in `Caches::nodes`",
        ));
    }
    Ok(quote!(#owner))
}

/// The arguments of a handler.
struct Arguments<'f> {
    reviewed: Reviewed<'f>,
    /// `&Snapshot`, or a view by value.
    snapshot: &'f Type,
    /// Whether the function adds to the errors of the type's own rules, in place of deciding alone.
    adds_errors: bool,
}

impl<'f> Arguments<'f> {
    fn of(signature: &'f Signature) -> syn::Result<Self> {
        let wrong = || {
            syn::Error::new(
                signature.span(),
                "a handler is `fn(&Review<T>, &Snapshot) -> Verdict`, `fn(&Request<'_>, &Snapshot) -> Verdict`, or `fn(&Review<T>, &Snapshot, &mut Errors)`",
            )
        };
        let arguments: Vec<&Type> = signature
            .inputs
            .iter()
            .filter_map(|argument| match argument {
                FnArg::Typed(typed) => Some(ungrouped(&typed.ty)),
                FnArg::Receiver(_) => None,
            })
            .collect();
        let ([Type::Reference(review), snapshot, rest @ ..], true) =
            (arguments.as_slice(), arguments.len() == signature.inputs.len())
        else {
            return Err(wrong());
        };
        let adds_errors = match rest {
            [] => false,
            [Type::Reference(errors)] if errors.mutability.is_some() => true,
            _ => return Err(wrong()),
        };
        let reviewed = reviewed(&review.elem).ok_or_else(wrong)?;
        Ok(Arguments { reviewed, snapshot, adds_errors })
    }
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
    let Type::Path(path) = ungrouped(type_) else { return None };
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

/// A table of handlers: functions with `#[admission]` by their name, and whatever else is a `Handler`.
pub(crate) fn table(tokens: TokenStream) -> TokenStream {
    let list = match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => return error.to_compile_error(),
    };
    let elements = list.iter().map(|element| match ungrouped_expression(element) {
        Expr::Path(path) => {
            let mut path = path.clone();
            if let Some(last) = path.path.segments.last_mut() {
                last.ident = constant_name(&last.ident);
            }
            Expr::Path(path)
        }
        other => other.clone(),
    });
    quote!(&[#(#elements),*])
}

/// What a type declares of its handlers: `VALIDATING` and `MUTATING`, and the handlers themselves where the object is all
/// that they need.
pub(crate) fn derived(item: &Item<'_>, report: &Report) -> TokenStream {
    let (krate, ident) = (&item.krate, item.ident);
    let mut members = TokenStream::new();
    let mut seen = Vec::new();
    for entry in item.entries.iter().filter(|entry| entry.name() == "admission") {
        let Some(parts) = report.keep(entry.list()) else { continue };
        if let Err(error) = words::only(&parts, &[&HANDLERS]) {
            report.add(error);
            continue;
        }
        for part in &parts {
            let mutating = part.name() == "mutate";
            if seen.contains(&mutating) {
                report.add(part.wrong(&format!(
                    "`{}` is given twice; one path may have several entries: `entry(…), entry(…)`",
                    part.word
                )));
                continue;
            }
            seen.push(mutating);
            let handler = part.list().and_then(|words| Handler::parse(&words, part.span(), Some(mutating)));
            let Some(handler) = report.keep(handler) else { continue };
            let Some(declaration) = report.keep(handler.declaration(krate, &quote!(#ident))) else { continue };
            let (constant, name, call, what) = if mutating {
                (
                    format_ident!("MUTATING"),
                    format_ident!("mutating_handler"),
                    quote!(|request, _| #krate::admission::mutate::<Self>(request)),
                    "gives defaults and normalises",
                )
            } else {
                (
                    format_ident!("VALIDATING"),
                    format_ident!("validating_handler"),
                    quote!(|request, _| #krate::admission::validate::<Self>(request, &Self::VALIDATING)),
                    "denies what breaks the type's rules",
                )
            };
            let documentation = format!("The path and the entries of the handler that {what}.");
            members.extend(quote! {
                #[doc = #documentation]
                pub const #constant: #krate::admission::Declaration = #declaration;
            });
            if !handler.snapshot {
                let documentation = format!("The handler that {what}.");
                members.extend(quote! {
                    #[doc = #documentation]
                    pub const fn #name<C: ?Sized>() -> #krate::admission::Handler<C> {
                        Self::#constant.decided_by(#call)
                    }
                });
            }
        }
    }
    if members.is_empty() { members } else { quote!(#[automatically_derived] impl #ident { #members }) }
}
