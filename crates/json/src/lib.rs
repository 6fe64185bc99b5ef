//! JSON of the types that journals, requests and documents consist of.
//!
//! The derives of serde make code that is generic over the format. It is compiled again in every crate that reads or writes a
//! type, and several times in each: the code that read journals was a quarter of the program. The derives of this crate
//! understand the same attributes ([`Serialize`] and [`Deserialize`] say which) and make plain functions, which are compiled
//! once, with the type. Writing makes a [`Node`], reading takes a [`serde_json::Value`]. The types still implement the traits
//! of serde, so that they can be used with every format and inside types whose derives are those of serde. One thing is not
//! read: a struct that is written as the list of its fields.
#![no_std]

extern crate alloc;

mod error;
mod from_json;
mod node;
mod to_json;

pub use error::JsonError;
pub use from_json::{
    FieldMap, FromJson, expect_object, read_json, refuse_unknown, take_field, take_list, take_present, take_tag,
    take_variant,
};
pub use node::{Fields, Node};
pub use to_json::{ToJson, make_object, write_json};

/// The trait of serde, and a derive for it that makes no generic code.
pub use serde::ser::Serialize;
/// Attributes of types: `rename_all`, `tag`, `content`, `untagged`, `transparent`, `into`. Of fields: `rename`, `flatten`,
/// `skip`, `skip_serializing_if`. Of variants: `rename`, `untagged`. All of them mean what they mean for serde.
pub use tribunal_json_derive::Serialize;

/// The trait of serde, and a derive for it that makes no generic code.
pub use serde::de::Deserialize;
/// Attributes of types: those of [`Serialize`] with `try_from` for `into`, also `default`, `deny_unknown_fields` and
/// `remote`. Of fields also `default`.
pub use tribunal_json_derive::Deserialize;

/// JSON Schemas of types, for the tests that ask for them. Its derive is named by its whole path, `schemars::JsonSchema`, and
/// makes nothing without the feature `schema`: no user waits for the code that makes schemas.
#[cfg(feature = "schema")]
pub use schemars;

#[cfg(not(feature = "schema"))]
pub mod schemars {
    pub use tribunal_json_derive::JsonSchema;

    /// Every type has it in builds without schemas.
    pub trait JsonSchema {}

    impl<T> JsonSchema for T {}
}

/// Implements `Serialize` for a type whose [`ToJson`] is written by hand.
#[macro_export]
macro_rules! serialize_by_json {
    ($type:ty) => {
        impl $crate::Serialize for $type {
            fn serialize<S: $crate::private::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::write_json(self, serializer)
            }
        }
    };
}

/// Implements [`ToJson`] and `Serialize` for types that are written as the text that they display.
#[macro_export]
macro_rules! write_as_text {
    ($($type:ty),+) => {
        $(
            impl $crate::ToJson for $type {
                fn to_node(&self) -> $crate::Node<'_> {
                    $crate::Node::from_display(self)
                }
            }

            $crate::serialize_by_json!($type);
        )+
    };
}

/// Implements the traits of serde for a type whose [`ToJson`] and [`FromJson`] are written by hand.
#[macro_export]
macro_rules! serde_by_json {
    ($type:ty) => {
        $crate::serialize_by_json!($type);

        impl<'de> $crate::Deserialize<'de> for $type {
            fn deserialize<D: $crate::private::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::read_json(deserializer)
            }
        }
    };
}

/// What the derives name in the code that they make.
#[doc(hidden)]
pub mod private {
    pub use alloc::{string::String, vec::Vec};

    pub use serde::{Deserializer, Serializer};
    pub use serde_json::Value;
}
