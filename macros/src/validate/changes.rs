//! The rules about what may become of an old value: `immutable` inside `admission(…)`, and `check_update`.
//!
//! An old value is found by the names of fields and entries, and an item of a list by the keys of the list. Where a list
//! has no keys, rules inside of it do not compile.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Member, Type};

use super::place;
use crate::{
    marker::{Keyword, Marker},
    model::{Body, Content, Field, Item, Variant},
    report::respanned,
    shape::{Peeled, Shape, Wrapper, may_have_rules, peel},
};

/// Everything about the change of one field, with `at` naming it.
pub(super) fn of_field(item: &Item<'_>, field: &Field<'_>, value: &TokenStream, old: &TokenStream) -> TokenStream {
    let krate = &item.krate;
    let mut code = TokenStream::new();
    if is_immutable(&field.markers.admission) {
        code.extend(quote!(#krate::rule::immutable(#value, #old, at, errors);));
    }
    for check in &field.markers.update_checks {
        code.extend(quote!(#check(#value, #old, at, errors);));
    }
    if let Some((keys, item_type)) = keyed_items(item, field) {
        let immutable = items_immutable(field).then(|| quote!(#krate::rule::immutable(new, old, at, errors);));
        let inside = inside(field, item_type).then(|| quote!(#krate::Validate::validate_update(new, old, at, errors);));
        if immutable.is_some() || inside.is_some() {
            let items = quote! {
                #krate::validate::items_by_key(value, old, &[#(#keys),*], at, errors, |new, old, at, errors| {
                    #immutable #inside
                });
            };
            code.extend(both(&field.peeled, value, old, &items));
        }
    } else if inside(field, field.type_) {
        code.extend(quote!(#krate::Validate::validate_update(#value, #old, at, errors);));
    }
    code
}

fn is_immutable(markers: &[Marker]) -> bool {
    markers.iter().any(|marker| matches!(marker.keyword, Keyword::Immutable))
}

fn items_immutable(field: &Field<'_>) -> bool {
    field.markers.admission.iter().any(|marker| matches!(&marker.keyword, Keyword::Items(items) if is_immutable(items)))
}

/// The keys of a list and the type of its items; none where the items have no identity.
fn keyed_items<'f>(item: &'f Item<'_>, field: &'f Field<'_>) -> Option<(Vec<&'f str>, &'f Type)> {
    let Shape::Array(item_type) = field.peeled.shape else { return None };
    let mut keys = field.markers.list_map_keys();
    if matches!(item.body, Body::Newtype(_)) {
        keys.extend(item.markers.list_map_keys());
    }
    (!keys.is_empty()).then_some((keys, item_type))
}

/// Whether values of the field's type, or its items, may have rules of their own.
fn inside(field: &Field<'_>, type_: &Type) -> bool {
    may_have_rules(&peel(type_).shape) && !field.markers.is_foreign()
}

/// Binds `value` and `old` to what is inside of the wrappers, where both are there, and does `code` with them.
fn both(peeled: &Peeled<'_>, value: &TokenStream, old: &TokenStream, code: &TokenStream) -> TokenStream {
    let inside = peeled.wrappers.iter().rev().fold(code.clone(), |inside, wrapper| match wrapper {
        Wrapper::Option => quote!(if let (Some(value), Some(old)) = (value, old) { #inside }),
        Wrapper::Pointer => quote!({ let (value, old) = (&**value, &**old); #inside }),
    });
    quote!({ let (value, old) = (#value, #old); #inside })
}

/// Variants: a value that became another variant is a new one.
pub(super) fn of_variants(item: &Item<'_>, variants: &[Variant<'_>]) -> TokenStream {
    let arms: Vec<TokenStream> = variants.iter().filter_map(|variant| arm(item, variant)).collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    let rest = (variants.len() > 1).then(|| quote!(_ => {}));
    quote!(match (self, old) { #(#arms)* #rest })
}

fn arm(item: &Item<'_>, variant: &Variant<'_>) -> Option<TokenStream> {
    let ident = variant.ident;
    let (new_pattern, old_pattern, code) = match &variant.content {
        Content::Unit => return None,
        Content::Newtype(field) => {
            let code = of_field(item, field, &quote!(value), &quote!(old));
            (quote!(Self::#ident(value)), quote!(Self::#ident(old)), code)
        }
        Content::Struct(fields) => {
            let (mut new_members, mut old_members) = (TokenStream::new(), TokenStream::new());
            let mut code = TokenStream::new();
            for (index, field) in fields.iter().enumerate() {
                let (new, old) = (format_ident!("field_{index}"), format_ident!("old_{index}"));
                let field_code = place::of_field(field, of_field(item, field, &quote!(#new), &quote!(#old)));
                if let (Member::Named(member), false) = (&field.member, field_code.is_empty()) {
                    new_members.extend(quote!(#member: #new,));
                    old_members.extend(quote!(#member: #old,));
                    code.extend(field_code);
                }
            }
            (quote!(Self::#ident { #new_members .. }), quote!(Self::#ident { #old_members .. }), code)
        }
    };
    if code.is_empty() {
        return None;
    }
    let step = place::of_variant(item, variant);
    Some(quote!((#new_pattern, #old_pattern) => { #step #code }))
}

// === what is known while compiling ===

/// `Validate::CHANGES`; none where there is nothing to say.
pub(super) fn constant(item: &Item<'_>) -> Option<TokenStream> {
    let krate = &item.krate;
    let fields = item.all_fields();
    let own = !item.markers.update_checks.is_empty()
        || fields.iter().any(|field| {
            is_immutable(&field.markers.admission) || items_immutable(field) || !field.markers.update_checks.is_empty()
        });
    let changes = quote!(#krate::validate::Changes);
    if own {
        return Some(quote!(const CHANGES: #changes = #changes::Ruled;));
    }
    let parts: Vec<TokenStream> = fields
        .iter()
        .filter_map(|field| {
            let type_ = followed(item, field);
            inside(field, type_).then(|| quote!(<#type_ as #krate::Validate>::CHANGES))
        })
        .collect();
    (!parts.is_empty()).then(|| quote!(const CHANGES: #changes = #changes::of(&[#(#parts),*]);))
}

/// Constants that fail to compile where a rule stands inside of a list without keys.
pub(super) fn identities(item: &Item<'_>) -> TokenStream {
    let krate = &item.krate;
    let lists = item.all_fields().into_iter().filter_map(|field| {
        let type_ = followed(item, field);
        let checked = inside(field, type_) && holds_a_list(type_) && !item.is_generic(type_);
        // Every token stands where the field stands, so that the compiler points there.
        let check = checked.then(|| respanned(quote!(#krate::validate::needs_identity::<#type_>()), field.span))?;
        Some(quote_spanned!(field.span=> const _: () = #check;))
    });
    lists.collect()
}

/// The type whose own rules are followed: that of the items, where they have keys.
fn followed<'f>(item: &'f Item<'_>, field: &'f Field<'_>) -> &'f Type {
    keyed_items(item, field).map_or(field.type_, |(_, item_type)| item_type)
}

fn holds_a_list(type_: &Type) -> bool {
    match peel(type_).shape {
        Shape::Array(_) => true,
        Shape::Map(value) => holds_a_list(value),
        _ => false,
    }
}
