//! TLS for `https`, with the system's trusted certificates.

use std::io;
use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Reads the system's certificates. Unreadable ones are left out, if there are others.
pub(super) fn config() -> io::Result<TlsConfig> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.iter().map(|error| format!(": {error}")).collect::<String>();
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no certificates{why}")));
    }
    let owned = |certificate: &[u8]| Certificate::from_der(certificate).to_owned();
    let roots = found.certs.iter().map(|certificate| owned(certificate)).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        // Selected explicitly, because ureq otherwise requires that the program has selected one.
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
