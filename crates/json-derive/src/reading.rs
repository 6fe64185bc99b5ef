//! Makes the code that reads a type.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Data, DataEnum, DeriveInput, Fields, FieldsNamed, Ident, Variant};

use crate::{
    attributes::{
        EnumForm, FieldAttributes, FieldDefault, TypeAttributes, VariantAttributes, bound_parameters, copy_conditions,
        tuple_names,
    },
    names::NameCase,
};

pub(crate) fn implement_reading(input: &DeriveInput) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    let name = &input.ident;
    let generics = bound_parameters(&input.generics, &syn::parse_quote!(::tribunal_json::FromJson));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    // This form of the name is understood where a type is expected, and where a value is.
    let turbofish = type_generics.as_turbofish();
    let made_type = attributes.remote.as_ref().map_or_else(|| quote!(#name #turbofish), |path| path.to_token_stream());
    let methods = match (&attributes.try_from, &input.data) {
        (Some(read_type), _) => read_value(
            &made_type,
            &quote! {
                let read = <#read_type as ::tribunal_json::FromJson>::from_value(value)?;
                <Self as ::core::convert::TryFrom<#read_type>>::try_from(read)
                    .map_err(|error| ::tribunal_json::JsonError::from_display(&error))
            },
        ),
        (None, Data::Struct(data)) => read_struct(&made_type, &data.fields, &attributes)?,
        (None, Data::Enum(data)) => read_enum(&made_type, name, data, &attributes)?,
        (None, Data::Union(_)) => return Err(syn::Error::new_spanned(input, "a union has no form in JSON")),
    };
    if attributes.remote.is_some() {
        return Ok(quote! { impl #impl_generics #name #type_generics #where_clause { #methods } });
    }
    let lifetime: syn::GenericParam = syn::parse_quote!('json);
    let serde_parameters = core::iter::once(&lifetime).chain(&generics.params);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::tribunal_json::FromJson for #name #type_generics #where_clause {
            #methods
        }

        #[automatically_derived]
        impl<#(#serde_parameters),*> ::tribunal_json::Deserialize<'json> for #name #type_generics #where_clause {
            fn deserialize<Source: ::tribunal_json::private::Deserializer<'json>>(
                deserializer: Source,
            ) -> ::core::result::Result<Self, Source::Error> {
                ::tribunal_json::read_json(deserializer)
            }
        }
    })
}

/// Makes `from_value` and `from_fields` of a type that is an object. The body reads `fields`.
fn read_object(made_type: &TokenStream, body: &TokenStream) -> TokenStream {
    quote! {
        fn from_value(
            value: ::tribunal_json::private::Value,
        ) -> ::core::result::Result<#made_type, ::tribunal_json::JsonError> {
            Self::from_fields(&mut ::tribunal_json::expect_object(value)?)
        }

        fn from_fields(
            fields: &mut ::tribunal_json::FieldMap,
        ) -> ::core::result::Result<#made_type, ::tribunal_json::JsonError> {
            let _ = &fields;
            #body
        }
    }
}

fn read_struct(made_type: &TokenStream, fields: &Fields, attributes: &TypeAttributes) -> syn::Result<TokenStream> {
    Ok(match fields {
        Fields::Named(named) if !attributes.is_transparent => {
            let (reading, names) = read_named(named, attributes.rename_all, attributes.has_default)?;
            let defaults = attributes
                .has_default
                .then(|| quote! { let defaults = <Self as ::core::default::Default>::default(); });
            let check = attributes.refuses_unknown.then(|| quote! { ::tribunal_json::refuse_unknown(fields)?; });
            let body = quote! { #defaults #reading #check ::core::result::Result::Ok(#made_type { #names }) };
            read_object(made_type, &body)
        }
        Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
            read_value(made_type, &quote!(::tribunal_json::FromJson::from_value(value).map(#made_type)))
        }
        other => return Err(syn::Error::new_spanned(other, "only fields with names, or one without, can be read")),
    })
}

/// Makes a `let` for each field, and the list of their names. Flattened fields are read last: they get what is left.
fn read_named(
    named: &FieldsNamed,
    rename_all: Option<NameCase>,
    has_defaults: bool,
) -> syn::Result<(TokenStream, TokenStream)> {
    let (mut plain_fields, mut flat_fields, mut names) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for field in &named.named {
        let attributes = FieldAttributes::parse(field)?;
        let Some(field_name) = &field.ident else { continue };
        let json_name = attributes.json_name(field_name, rename_all);
        names.extend(quote!(#field_name,));
        if attributes.is_flat {
            flat_fields.extend(quote! { let #field_name = ::tribunal_json::FromJson::from_fields(fields)?; });
            continue;
        }
        let present = quote!(::tribunal_json::take_present(fields, #json_name)?);
        let value = match &attributes.default {
            _ if attributes.is_skipped => quote!(::core::default::Default::default()),
            Some(FieldDefault::OfType) => quote!(#present.unwrap_or_default()),
            Some(FieldDefault::Function(path)) => quote!(#present.unwrap_or_else(#path)),
            None if has_defaults => quote!(#present.unwrap_or(defaults.#field_name)),
            None => quote!(::tribunal_json::take_field(fields, #json_name)?),
        };
        plain_fields.extend(quote! { let #field_name = #value; });
    }
    Ok((quote! { #plain_fields #flat_fields }, names))
}

/// The parts of the code that reads an enum.
struct EnumArms {
    /// Arms by the name of the variant.
    tagged: TokenStream,
    /// Arms of variants that are no more than their name.
    named: TokenStream,
    /// Blocks that return the first variant without a tag that can be read from `value`.
    untagged: TokenStream,
    /// The names for the error, each with the conditions of its variant.
    known_names: TokenStream,
}

impl EnumArms {
    fn from_variants(
        made_type: &TokenStream,
        data: &DataEnum,
        attributes: &TypeAttributes,
        form: &EnumForm,
    ) -> syn::Result<EnumArms> {
        let (mut tagged, mut named) = (TokenStream::new(), TokenStream::new());
        let (mut untagged, mut known_names) = (TokenStream::new(), TokenStream::new());
        for variant in &data.variants {
            let variant_attributes = VariantAttributes::parse(variant)?;
            let conditions = copy_conditions(&variant.attrs);
            if variant_attributes.is_untagged || *form == EnumForm::Untagged {
                let code = read_content(made_type, variant, &quote!(value.clone()))?;
                untagged.extend(quote! {
                    #conditions
                    {
                        let read = || -> ::core::result::Result<#made_type, ::tribunal_json::JsonError> { #code };
                        if let ::core::result::Result::Ok(made) = read() {
                            return ::core::result::Result::Ok(made);
                        }
                    }
                });
                continue;
            }
            let json_name = variant_attributes.json_name(variant, attributes.rename_all);
            let variant_name = &variant.ident;
            known_names.extend(quote!(#conditions #json_name,));
            match (form, &variant.fields) {
                (EnumForm::External, Fields::Unit) => named.extend(quote! {
                    #conditions #json_name => return ::core::result::Result::Ok(#made_type::#variant_name),
                }),
                (EnumForm::Internal { .. }, _) => {
                    let code = read_tagged(made_type, variant)?;
                    tagged.extend(quote! { #conditions #json_name => { #code } });
                }
                _ => {
                    let code = read_content(made_type, variant, &quote!(value))?;
                    tagged.extend(quote! { #conditions #json_name => { #code } });
                }
            }
        }
        Ok(EnumArms { tagged, named, untagged, known_names })
    }
}

fn read_enum(
    made_type: &TokenStream,
    name: &Ident,
    data: &DataEnum,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    let form = attributes.enum_form();
    let EnumArms { tagged, named, untagged, known_names } =
        EnumArms::from_variants(made_type, data, attributes, &form)?;
    let unknown = quote! {
        ::core::result::Result::Err(::tribunal_json::JsonError::unknown_variant(&name, &[#known_names]))
    };
    Ok(match &form {
        EnumForm::External => read_value(
            made_type,
            &quote! {
                let (name, value) = match value {
                    ::tribunal_json::private::Value::String(name) => {
                        match name.as_str() { #named _ => {} }
                        (name, ::tribunal_json::private::Value::Null)
                    }
                    other => ::tribunal_json::take_variant(other)?,
                };
                let _ = &value;
                match name.as_str() { #tagged _ => #unknown }
            },
        ),
        EnumForm::Untagged => {
            let message = format!("data did not match any form of {name}");
            let refusal = quote!(::core::result::Result::Err(::tribunal_json::JsonError::new(#message)));
            read_value(made_type, &quote! { #untagged #refusal })
        }
        EnumForm::Internal { tag } => {
            // What has no tag, or another one, may be a variant without one, of which the tag is a field.
            let untagged = (!untagged.is_empty()).then(|| {
                quote! {
                    let value = ::tribunal_json::private::Value::Object(::core::mem::take(fields));
                    #untagged
                }
            });
            let put_tag_back = untagged.is_some().then(|| {
                quote! { fields.insert(::tribunal_json::private::String::from(#tag), name.clone().into()); }
            });
            let body = quote! {
                let name = match ::tribunal_json::take_tag(fields, #tag) {
                    ::core::result::Result::Ok(name) => name,
                    ::core::result::Result::Err(error) => {
                        #untagged
                        return ::core::result::Result::Err(error);
                    }
                };
                match name.as_str() {
                    #tagged
                    _ => {
                        #put_tag_back
                        #untagged
                        #unknown
                    }
                }
            };
            read_object(made_type, &body)
        }
        EnumForm::Adjacent { tag, content } => {
            let body = quote! {
                let name = ::tribunal_json::take_tag(fields, #tag)?;
                let value = fields.remove(#content).unwrap_or_default();
                match name.as_str() { #tagged _ => #unknown }
            };
            read_object(made_type, &body)
        }
    })
}

/// Makes `from_value` of a type. The body reads `value`.
fn read_value(made_type: &TokenStream, body: &TokenStream) -> TokenStream {
    quote! {
        fn from_value(
            value: ::tribunal_json::private::Value,
        ) -> ::core::result::Result<#made_type, ::tribunal_json::JsonError> {
            #body
        }
    }
}

/// Reads a variant whose fields stand beside the tag.
fn read_tagged(made_type: &TokenStream, variant: &Variant) -> syn::Result<TokenStream> {
    let variant_name = &variant.ident;
    Ok(match &variant.fields {
        Fields::Unit => quote!(::core::result::Result::Ok(#made_type::#variant_name)),
        Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
            quote!(::tribunal_json::FromJson::from_fields(fields).map(#made_type::#variant_name))
        }
        Fields::Unnamed(_) => return Err(syn::Error::new_spanned(variant, "a tagged variant has one part, or names")),
        Fields::Named(named) => {
            let (reading, names) = read_named(named, None, false)?;
            quote! { #reading ::core::result::Result::Ok(#made_type::#variant_name { #names }) }
        }
    })
}

/// Reads a variant from a value of its own.
fn read_content(made_type: &TokenStream, variant: &Variant, value: &TokenStream) -> syn::Result<TokenStream> {
    let variant_name = &variant.ident;
    Ok(match &variant.fields {
        Fields::Unit => quote! {
            <() as ::tribunal_json::FromJson>::from_value(#value).map(|()| #made_type::#variant_name)
        },
        Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
            quote!(::tribunal_json::FromJson::from_value(#value).map(#made_type::#variant_name))
        }
        Fields::Unnamed(unnamed) => {
            let count = unnamed.unnamed.len();
            let parts = tuple_names(count);
            quote! {
                let mut items = ::tribunal_json::take_list(#value, #count)?;
                #(let #parts = ::tribunal_json::FromJson::from_value(items.next().unwrap_or_default())?;)*
                ::core::result::Result::Ok(#made_type::#variant_name(#(#parts),*))
            }
        }
        Fields::Named(named) => {
            let (reading, names) = read_named(named, None, false)?;
            quote! {
                let fields = &mut ::tribunal_json::expect_object(#value)?;
                let _ = &fields;
                #reading
                ::core::result::Result::Ok(#made_type::#variant_name { #names })
            }
        }
    })
}
