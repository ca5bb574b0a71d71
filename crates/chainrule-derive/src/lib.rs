//! The derive macro for modules.
