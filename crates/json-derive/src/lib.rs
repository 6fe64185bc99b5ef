//! The derives `Serialize` and `Deserialize` of `tribunal-json`, which says what they are for and which attributes they know.
//!
//! [`attributes`] reads the attributes, [`writing`] and [`reading`] make the code.

mod attributes;
mod names;
mod reading;
mod writing;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `ToJson`, and `Serialize` of serde by it.
#[proc_macro_derive(Serialize, attributes(serde))]
pub fn derive_serialize(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    writing::implement_writing(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes nothing. It stands for the derive of schemars in programs that print no derived schema, and allows its attributes.
#[proc_macro_derive(JsonSchema, attributes(schemars, serde))]
pub fn derive_no_schema(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Implements `FromJson`, and `Deserialize` of serde by it.
#[proc_macro_derive(Deserialize, attributes(serde))]
pub fn derive_deserialize(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    reading::implement_reading(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
