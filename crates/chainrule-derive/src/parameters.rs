//! `#[derive(Parameters)]`: the fields of a struct or a variant, by name, as data.

use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, GenericParam, Ident};

type Tokens = proc_macro2::TokenStream;

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    let body = match &input.data {
        Data::Struct(data) => {
            let (pattern, value) = visited(name, &data.fields)?;
            quote! { let Self #pattern = self; #value }
        }
        Data::Enum(data) => {
            let mut arms = Vec::new();
            for variant in &data.variants {
                let own = &variant.ident;
                let (pattern, value) = visited(own, &variant.fields)?;
                arms.push(quote! { Self::#own #pattern => #value });
            }
            quote! { match self { #(#arms),* } }
        }
        Data::Union(_) => {
            let why = "Parameters can be derived for structs and enums only";
            return Err(syn::Error::new_spanned(name, why));
        }
    };
    let mut generics = input.generics.clone();
    for param in &mut generics.params {
        if let GenericParam::Type(param) = param {
            param.bounds.push(syn::parse_quote!(crate::param::Parameters));
        }
    }
    let (generics, types, bounds) = generics.split_for_impl();
    Ok(quote! {
        impl #generics crate::param::Parameters for #name #types #bounds {
            fn parameters(&self) -> crate::param::Param { #body }
        }
    })
}

/// The pattern that takes the fields apart, and their values as data.
fn visited(name: &Ident, fields: &Fields) -> syn::Result<(Tokens, Tokens)> {
    let name = name.to_string();
    let (mut patterns, mut values) = (Vec::new(), Vec::new());
    for (i, field) in fields.iter().enumerate() {
        let bound = format_ident!("field_{i}");
        let (pattern, key) = match &field.ident {
            Some(own) => (quote! { #own: #bound }, own.to_string()),
            None => (quote! { #bound }, i.to_string()),
        };
        let skip = is_skipped(field)?;
        patterns.push(match (&field.ident, skip) {
            (_, false) => pattern,
            (Some(own), true) => quote! { #own: _ },
            (None, true) => quote! { _ },
        });
        if !skip {
            values.push(quote! { (#key, crate::param::Parameters::parameters(#bound)) });
        }
    }
    let value = match values.is_empty() {
        true => quote! { crate::param::Param::Word(#name) },
        false => quote! { crate::param::Param::Struct(#name, ::std::vec![#(#values),*]) },
    };
    let pattern = match fields {
        Fields::Named(_) => quote! { { #(#patterns),* } },
        Fields::Unnamed(_) => quote! { ( #(#patterns),* ) },
        Fields::Unit => quote! {},
    };
    Ok((pattern, value))
}

fn is_skipped(field: &syn::Field) -> syn::Result<bool> {
    let mut skip = false;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("parameters")) {
        attribute.parse_nested_meta(|meta| {
            skip |= meta.path.is_ident("skip");
            if skip { Ok(()) } else { Err(meta.error("unknown attribute; there is skip")) }
        })?;
    }
    Ok(skip)
}
