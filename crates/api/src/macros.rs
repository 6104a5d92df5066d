//! Declaring the API's structs and enumerations: once each, with the decoding rules of the Go
//! decoder (absent and `null` are the zero value, unknown fields are ignored) and without empty
//! fields on output.

use serde::{Deserialize, Deserializer};

/// Decodes a field as the Go decoder does: `null` leaves the zero value.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether it is the zero value, which is omitted on output.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Declares structs of the API: camelCase names, lenient decoding, empty fields omitted. The fields
/// have the API's own names and meaning, so only the struct is documented.
macro_rules! api_structs {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[allow(missing_docs)]
        pub struct $name {$(
            $(#[$field_meta])*
            #[serde(
                deserialize_with = "crate::macros::or_default",
                skip_serializing_if = "crate::macros::is_default"
            )]
            pub $field: $type,
        )*}
    )*};
}

/// Declares an enumeration whose unknown values upstream keeps: they are stored in `Other`, and the
/// zero value is `Other("")`, the API's empty string.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* Other(crate::intern::Symbol) }

        impl $name {
            /// The value as in manifests.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* $name::Other(text) => text.as_str() }
            }

            /// Whether the field is not set.
            pub fn is_unset(self) -> bool {
                self == $name::Other(crate::intern::Symbol::EMPTY)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                match text { $($text => $name::$variant,)* _ => $name::Other(text.into()) }
            }
        }

        impl Default for $name {
            fn default() -> $name { $name::Other(crate::intern::Symbol::EMPTY) }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                crate::macros::text(deserializer, |text| {
                    Ok::<_, std::convert::Infallible>($name::from(text))
                })
            }
        }
    };
}

/// Declares an enumeration for which the API accepts no other values: any other text is an error
/// that lists the valid ones. An empty text is the default, as for an unset field.
macro_rules! closed_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($variant:ident = $text:literal),* $(,)? } default $default:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* }

        impl $name {
            /// The value as in manifests.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl Default for $name {
            fn default() -> $name { $name::$default }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                crate::macros::text(deserializer, |text| match text {
                    "" => Ok($name::default()),
                    $($text => Ok($name::$variant),)*
                    other => Err(format!(
                        "unknown value {other:?}, expected {}",
                        [$(concat!("`", $text, "`")),*].join(" or ")
                    )),
                })
            }
        }
    };
}

pub(crate) use {api_structs, closed_enum, open_enum};

/// Decodes a string and passes it to `convert`, whose error becomes the decoder's.
pub fn text<'de, D, T, R>(
    deserializer: D,
    convert: impl FnOnce(&str) -> Result<T, R>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    R: std::fmt::Display,
{
    struct TextVisitor<F>(F);
    impl<T, R, F> serde::de::Visitor<'_> for TextVisitor<F>
    where
        R: std::fmt::Display,
        F: FnOnce(&str) -> Result<T, R>,
    {
        type Value = T;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            (self.0)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_any(TextVisitor(convert))
}
