//! `https`, with the certificates that the system trusts.

use std::io;
use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Reads the system's certificates. Those that cannot be read are left out, as long as there are others.
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
        // Named here, since ureq would else want the program to have chosen one.
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}
