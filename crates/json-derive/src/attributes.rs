//! The attributes of types, fields and variants. One that is not known is an error: it would be ignored otherwise.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Field, Generics, Ident, LitStr, Path, Type, TypeParamBound, Variant, meta::ParseNestedMeta};

use crate::names::NameCase;

/// How the variants of an enum are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnumForm {
    /// `"name"` or `{"name": …}`.
    External,
    /// `{"tag": "name", …}`.
    Internal {
        tag: String,
    },
    /// `{"tag": "name", "content": …}`.
    Adjacent {
        tag: String,
        content: String,
    },
    Untagged,
}

/// What stands at a type.
#[derive(Default)]
pub(crate) struct TypeAttributes {
    pub rename_all: Option<NameCase>,
    pub has_default: bool,
    pub is_transparent: bool,
    pub refuses_unknown: bool,
    /// The type that is written and read in place of this one.
    pub into: Option<Type>,
    pub try_from: Option<Type>,
    /// The type that the code is made for, if this one only describes it.
    pub remote: Option<Path>,
    tag: Option<String>,
    content: Option<String>,
    is_untagged: bool,
}

impl TypeAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<TypeAttributes> {
        let mut parsed = TypeAttributes::default();
        for_each_serde_part(attributes, |part| {
            if part.path.is_ident("rename_all") {
                parsed.rename_all = Some(NameCase::parse(&part.value()?.parse()?)?);
            } else if part.path.is_ident("tag") {
                parsed.tag = Some(parse_text(part)?);
            } else if part.path.is_ident("content") {
                parsed.content = Some(parse_text(part)?);
            } else if part.path.is_ident("untagged") {
                parsed.is_untagged = true;
            } else if part.path.is_ident("transparent") {
                parsed.is_transparent = true;
            } else if part.path.is_ident("default") {
                parsed.has_default = true;
            } else if part.path.is_ident("deny_unknown_fields") {
                parsed.refuses_unknown = true;
            } else if part.path.is_ident("into") {
                parsed.into = Some(part.value()?.parse::<LitStr>()?.parse()?);
            } else if part.path.is_ident("try_from") {
                parsed.try_from = Some(part.value()?.parse::<LitStr>()?.parse()?);
            } else if part.path.is_ident("remote") {
                parsed.remote = Some(part.value()?.parse::<LitStr>()?.parse()?);
            } else {
                return Err(unknown_attribute(part));
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    pub(crate) fn enum_form(&self) -> EnumForm {
        match (&self.tag, &self.content) {
            _ if self.is_untagged => EnumForm::Untagged,
            (Some(tag), Some(content)) => EnumForm::Adjacent { tag: tag.clone(), content: content.clone() },
            (Some(tag), None) => EnumForm::Internal { tag: tag.clone() },
            (None, _) => EnumForm::External,
        }
    }
}

/// What a field is if it is missing.
pub(crate) enum FieldDefault {
    OfType,
    Function(Path),
}

/// What stands at a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    rename: Option<String>,
    pub default: Option<FieldDefault>,
    pub skip_if: Option<Path>,
    pub is_flat: bool,
    pub is_skipped: bool,
}

impl FieldAttributes {
    pub(crate) fn parse(field: &Field) -> syn::Result<FieldAttributes> {
        let mut parsed = FieldAttributes::default();
        for_each_serde_part(&field.attrs, |part| {
            if part.path.is_ident("rename") {
                parsed.rename = Some(parse_text(part)?);
            } else if part.path.is_ident("default") {
                let is_named = part.input.peek(syn::Token![=]);
                parsed.default = Some(match is_named {
                    true => FieldDefault::Function(part.value()?.parse::<LitStr>()?.parse()?),
                    false => FieldDefault::OfType,
                });
            } else if part.path.is_ident("skip_serializing_if") {
                parsed.skip_if = Some(part.value()?.parse::<LitStr>()?.parse()?);
            } else if part.path.is_ident("flatten") {
                parsed.is_flat = true;
            } else if part.path.is_ident("skip") {
                parsed.is_skipped = true;
            } else {
                return Err(unknown_attribute(part));
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    pub(crate) fn json_name(&self, field_name: &Ident, rename_all: Option<NameCase>) -> String {
        let rust_name = plain_name(field_name);
        let renamed = || rename_all.map_or_else(|| rust_name.clone(), |case| case.name_field(&rust_name));
        self.rename.clone().unwrap_or_else(renamed)
    }
}

/// What stands at a variant.
#[derive(Default)]
pub(crate) struct VariantAttributes {
    rename: Option<String>,
    pub is_untagged: bool,
}

impl VariantAttributes {
    pub(crate) fn parse(variant: &Variant) -> syn::Result<VariantAttributes> {
        let mut parsed = VariantAttributes::default();
        for_each_serde_part(&variant.attrs, |part| {
            if part.path.is_ident("rename") {
                parsed.rename = Some(parse_text(part)?);
            } else if part.path.is_ident("untagged") {
                parsed.is_untagged = true;
            } else {
                return Err(unknown_attribute(part));
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    pub(crate) fn json_name(&self, variant: &Variant, rename_all: Option<NameCase>) -> String {
        let rust_name = plain_name(&variant.ident);
        let renamed = || rename_all.map_or_else(|| rust_name.clone(), |case| case.name_variant(&rust_name));
        self.rename.clone().unwrap_or_else(renamed)
    }
}

/// Demands a trait of the type parameters that have no bound. A parameter with a bound is not what the fields consist of: its
/// own trait says what can be done with them.
pub(crate) fn bound_parameters(generics: &Generics, bound: &TypeParamBound) -> Generics {
    let mut bound_generics = generics.clone();
    for parameter in bound_generics.type_params_mut().filter(|parameter| parameter.bounds.is_empty()) {
        parameter.bounds.push(bound.clone());
    }
    bound_generics
}

/// The conditions under which a variant exists: the code for it needs the same.
pub(crate) fn copy_conditions(attributes: &[Attribute]) -> TokenStream {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    quote! { #(#conditions)* }
}

fn for_each_serde_part(
    attributes: &[Attribute],
    mut take_part: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|part| take_part(&part))?;
    }
    Ok(())
}

fn parse_text(part: &ParseNestedMeta<'_>) -> syn::Result<String> {
    Ok(part.value()?.parse::<LitStr>()?.value())
}

fn unknown_attribute(part: &ParseNestedMeta<'_>) -> syn::Error {
    part.error("this attribute is not known to the derives of tribunal-json")
}

/// A name without the mark of raw identifiers.
fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_string).unwrap_or(name)
}

/// The names under which the fields of a tuple are bound in a pattern.
pub(crate) fn tuple_names(count: usize) -> Vec<Ident> {
    (0..count).map(|position| Ident::new(&format!("part_{position}"), Span::call_site())).collect()
}
