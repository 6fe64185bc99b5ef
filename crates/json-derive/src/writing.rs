//! Makes the code that writes a type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Fields, FieldsNamed, Ident, Variant};

use crate::{
    attributes::{
        EnumForm, FieldAttributes, TypeAttributes, VariantAttributes, bound_parameters, copy_conditions, tuple_names,
    },
    names::NameCase,
};

pub(crate) fn implement_writing(input: &DeriveInput) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    let methods = match (&attributes.into, &input.data) {
        (Some(written_type), _) => quote! {
            fn to_node(&self) -> ::tribunal_json::Node<'_> {
                let written = <#written_type as ::core::convert::From<Self>>::from(::core::clone::Clone::clone(self));
                ::tribunal_json::ToJson::to_node(&written).into_owned()
            }
        },
        (None, Data::Struct(data)) => write_struct(&data.fields, &attributes)?,
        (None, Data::Enum(data)) => write_enum(data, &attributes)?,
        (None, Data::Union(_)) => return Err(syn::Error::new_spanned(input, "a union has no form in JSON")),
    };
    let name = &input.ident;
    let generics = bound_parameters(&input.generics, &syn::parse_quote!(::tribunal_json::ToJson));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::tribunal_json::ToJson for #name #type_generics #where_clause {
            #methods
        }

        #[automatically_derived]
        impl #impl_generics ::tribunal_json::Serialize for #name #type_generics #where_clause {
            fn serialize<Target: ::tribunal_json::private::Serializer>(
                &self,
                serializer: Target,
            ) -> ::core::result::Result<Target::Ok, Target::Error> {
                ::tribunal_json::write_json(self, serializer)
            }
        }
    })
}

fn write_struct(fields: &Fields, attributes: &TypeAttributes) -> syn::Result<TokenStream> {
    Ok(match fields {
        Fields::Named(named) if !attributes.is_transparent => {
            let adding = add_named(named, attributes.rename_all, |field_name| quote!(&self.#field_name))?;
            quote! {
                fn to_node(&self) -> ::tribunal_json::Node<'_> {
                    ::tribunal_json::make_object(self)
                }

                fn add_fields<'json>(&'json self, fields: &mut ::tribunal_json::Fields<'json>) {
                    let _ = &fields;
                    #adding
                }
            }
        }
        Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => quote! {
            fn to_node(&self) -> ::tribunal_json::Node<'_> {
                ::tribunal_json::ToJson::to_node(&self.0)
            }

            fn add_fields<'json>(&'json self, fields: &mut ::tribunal_json::Fields<'json>) {
                ::tribunal_json::ToJson::add_fields(&self.0, fields);
            }
        },
        other => return Err(syn::Error::new_spanned(other, "only fields with names, or one without, can be written")),
    })
}

/// Makes the code that adds fields with names to `fields`. `refer_to` gives the reference to a field.
fn add_named(
    named: &FieldsNamed,
    rename_all: Option<NameCase>,
    refer_to: impl Fn(&Ident) -> TokenStream,
) -> syn::Result<TokenStream> {
    let mut code = TokenStream::new();
    for field in &named.named {
        let attributes = FieldAttributes::parse(field)?;
        let Some(field_name) = field.ident.as_ref().filter(|_| !attributes.is_skipped) else { continue };
        let reference = refer_to(field_name);
        let json_name = attributes.json_name(field_name, rename_all);
        let adding = match attributes.is_flat {
            true => quote! { ::tribunal_json::ToJson::add_fields(#reference, fields); },
            false => quote! { fields.add_field(#json_name, #reference); },
        };
        code.extend(match &attributes.skip_if {
            Some(is_skipped) => quote! { if !#is_skipped(#reference) { #adding } },
            None => adding,
        });
    }
    Ok(code)
}

fn write_enum(data: &DataEnum, attributes: &TypeAttributes) -> syn::Result<TokenStream> {
    if data.variants.is_empty() {
        return Ok(quote! {
            fn to_node(&self) -> ::tribunal_json::Node<'_> {
                match *self {}
            }
        });
    }
    let form = attributes.enum_form();
    let mut arms = TokenStream::new();
    for variant in &data.variants {
        let variant_attributes = VariantAttributes::parse(variant)?;
        let json_name = variant_attributes.json_name(variant, attributes.rename_all);
        let variant_form = if variant_attributes.is_untagged { &EnumForm::Untagged } else { &form };
        let conditions = copy_conditions(&variant.attrs);
        let (pattern, code) = write_variant(variant, variant_form, &json_name)?;
        // Tagged enums are written by their fields, all others as a node.
        let code = match (&form, variant_form) {
            (EnumForm::Internal { .. } | EnumForm::Adjacent { .. }, EnumForm::Untagged | EnumForm::External) => {
                quote! { fields.add_fields_of(#code) }
            }
            _ => code,
        };
        arms.extend(quote! { #conditions Self::#pattern => { #code } });
    }
    Ok(match form {
        EnumForm::Internal { .. } | EnumForm::Adjacent { .. } => quote! {
            fn to_node(&self) -> ::tribunal_json::Node<'_> {
                ::tribunal_json::make_object(self)
            }

            fn add_fields<'json>(&'json self, fields: &mut ::tribunal_json::Fields<'json>) {
                match self { #arms }
            }
        },
        EnumForm::External | EnumForm::Untagged => quote! {
            fn to_node(&self) -> ::tribunal_json::Node<'_> {
                match self { #arms }
            }
        },
    })
}

/// Makes the pattern of a variant, and the code that writes it.
fn write_variant(variant: &Variant, form: &EnumForm, json_name: &str) -> syn::Result<(TokenStream, TokenStream)> {
    let variant_name = &variant.ident;
    let (pattern, content) = match &variant.fields {
        Fields::Unit => (quote!(#variant_name), None),
        Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
            (quote!(#variant_name(content)), Some(quote!(::tribunal_json::ToJson::to_node(content))))
        }
        Fields::Unnamed(unnamed) => {
            let parts = tuple_names(unnamed.unnamed.len());
            let list = quote! {
                ::tribunal_json::Node::List([#(::tribunal_json::ToJson::to_node(#parts)),*].into())
            };
            (quote!(#variant_name(#(#parts),*)), Some(list))
        }
        Fields::Named(named) => {
            let (bindings, adding) = bind_named(named)?;
            if let EnumForm::Internal { tag } = form {
                return Ok((
                    quote!(#variant_name { #bindings .. }),
                    quote! { fields.add_text(#tag, #json_name); #adding },
                ));
            }
            let object = quote! {{
                let mut own_fields = ::tribunal_json::Fields::default();
                let fields = &mut own_fields;
                #adding
                ::tribunal_json::Node::Object(own_fields)
            }};
            (quote!(#variant_name { #bindings .. }), Some(object))
        }
    };
    let code = match (form, content) {
        (EnumForm::External, None) => {
            quote!(::tribunal_json::Node::Text(#json_name.into()))
        }
        (EnumForm::External, Some(content)) => quote! {
            let mut fields = ::tribunal_json::Fields::default();
            fields.add_node(#json_name, #content);
            ::tribunal_json::Node::Object(fields)
        },
        (EnumForm::Untagged, None) => quote!(::tribunal_json::Node::Null),
        (EnumForm::Untagged, Some(content)) => content,
        (EnumForm::Adjacent { tag, .. }, None) | (EnumForm::Internal { tag }, None) => {
            quote! { fields.add_text(#tag, #json_name); }
        }
        (EnumForm::Adjacent { tag, content: content_name }, Some(content)) => quote! {
            fields.add_text(#tag, #json_name);
            fields.add_node(#content_name, #content);
        },
        (EnumForm::Internal { tag }, Some(_)) => quote! {
            fields.add_text(#tag, #json_name);
            ::tribunal_json::ToJson::add_fields(content, fields);
        },
    };
    Ok((pattern, code))
}

/// Binds the fields of a variant that are written, and adds them to `fields`.
fn bind_named(named: &FieldsNamed) -> syn::Result<(TokenStream, TokenStream)> {
    let mut bindings = TokenStream::new();
    for field in &named.named {
        let is_written = !FieldAttributes::parse(field)?.is_skipped;
        if let Some(field_name) = field.ident.as_ref().filter(|_| is_written) {
            bindings.extend(quote!(#field_name,));
        }
    }
    // `rename_all` of an enum is for its variants.
    let adding = add_named(named, None, |field_name| quote!(#field_name))?;
    Ok((bindings, quote! { let _ = &fields; #adding }))
}
