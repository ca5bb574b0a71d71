//! `#[derive(Module)]`: tells a struct's parameters, buffers and sub-modules by name.
//!
//! Every field is asked what it is (`chainrule::nn::AsField`): tensors are parameters, modules are
//! walked into, numbers are passed over. `#[module(buffer)]` marks a tensor that is saved but not
//! trained, `#[module(name = "...")]` gives another name, `#[module(skip)]` leaves a field out.

mod parameters;

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Field, Fields, LitStr, parse_macro_input};

/// Implements `chainrule::nn::Module` for a struct. See the crate's documentation for the
/// attributes.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `Parameters`, with which the library visits the parameters of its own ops. For the
/// library alone.
#[doc(hidden)]
#[proc_macro_derive(Parameters, attributes(parameters))]
pub fn derive_parameters(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    parameters::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Contents of a field's `#[module(...)]`.
#[derive(Default)]
struct Attributes {
    name: Option<String>,
    buffer: bool,
    skip: bool,
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "Module can be derived for structs only",
        ));
    };
    let mut rows = Vec::new();
    for (i, field) in fields(&data.fields).enumerate() {
        let attributes = attributes(field)?;
        if attributes.skip {
            continue;
        }
        let member: syn::Member = match &field.ident {
            Some(ident) => format_ident!("{ident}").into(),
            None => i.into(),
        };
        let name = attributes.name.unwrap_or_else(|| match &field.ident {
            Some(ident) => ident.to_string(),
            None => i.to_string(),
        });
        rows.push(match attributes.buffer {
            true => quote! { out.extend(::chainrule::nn::buffer_field(#name, &self.#member)); },
            false => quote! { out.extend(::chainrule::nn::AsField::as_field(&self.#member).map(|f| (#name.to_string(), f))); },
        });
    }
    let (name, (generics, types, bounds)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #generics ::chainrule::nn::Module for #name #types #bounds {
            fn fields(&self) -> ::std::vec::Vec<(::std::string::String, ::chainrule::nn::Field<'_>)> {
                let mut out = ::std::vec::Vec::new();
                #(#rows)*
                out
            }
        }
    })
}

fn fields(fields: &Fields) -> Box<dyn Iterator<Item = &Field> + '_> {
    match fields {
        Fields::Named(named) => Box::new(named.named.iter()),
        Fields::Unnamed(unnamed) => Box::new(unnamed.unnamed.iter()),
        Fields::Unit => Box::new(std::iter::empty()),
    }
}

fn attributes(field: &Field) -> syn::Result<Attributes> {
    let mut out = Attributes::default();
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("buffer") {
                out.buffer = true;
            } else if meta.path.is_ident("skip") {
                out.skip = true;
            } else if meta.path.is_ident("name") {
                out.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else {
                return Err(
                    meta.error("unknown attribute; there are buffer, skip and name = \"...\"")
                );
            }
            Ok(())
        })?;
    }
    Ok(out)
}
