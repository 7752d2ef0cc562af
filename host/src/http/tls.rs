//! TLS with the roots of the operating system, loaded at the first handshake.
//!
//! Loading some 150 certificates takes milliseconds that a session over plain
//! http never needs, so the verifier is made when the first https request
//! leaves, on another thread, while the connection is being made. The system's
//! store is used and not a built-in one, because company proxies put their root
//! there.

use std::sync::{Arc, OnceLock};

use hermitcrab::llm::TransportError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::failure::invalid;

/// Verifies certificates against the system's roots, loaded on first use.
#[derive(Debug)]
pub(super) struct LazyRoots {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, Error>>,
}

impl LazyRoots {
    /// Nothing loaded yet.
    pub(super) fn new() -> Self {
        Self {
            provider: Arc::new(ring::default_provider()),
            verifier: OnceLock::new(),
        }
    }

    /// Whether the roots have been loaded (or could not be).
    pub(super) fn loaded(&self) -> bool {
        self.verifier.get().is_some()
    }

    /// Starts loading on another thread, so that it overlaps with connecting.
    /// A handshake that comes earlier waits for it.
    pub(super) fn load_in_background(self: &Arc<Self>) {
        if !self.loaded() {
            let roots = self.clone();
            tokio::task::spawn_blocking(move || {
                let _ = roots.verifier();
            });
        }
    }

    /// A client configuration that verifies with these roots.
    pub(super) fn client_config(self: &Arc<Self>) -> Result<ClientConfig, TransportError> {
        Ok(ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(format!("cannot set up TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(self.clone())
            .with_no_client_auth())
    }

    fn verifier(&self) -> Result<&Verifier, Error> {
        self.verifier
            .get_or_init(|| Verifier::new(self.provider.clone()))
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl ServerCertVerifier for LazyRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
