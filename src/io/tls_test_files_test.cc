#include "io/tls_test_files.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace berth::io {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* cert) const { X509_free(cert); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Cert = std::unique_ptr<X509, Free>;

template <typename Write>
std::string to_pem(Write write) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  write(bio.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

void add_extension(X509* cert, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, cert, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

Cert new_cert(EVP_PKEY* key, const std::string& name) {
  static long serial = 1;
  Cert cert(X509_new());
  X509_set_version(cert.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), 86400);
  X509_set_pubkey(cert.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return cert;
}

TestPair pems(X509* cert, EVP_PKEY* key) {
  return {to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, cert); }),
          to_pem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
}

}  // namespace

TestPair make_test_ca(const std::string& name) {
  const Key key(EVP_EC_gen("P-256"));
  const Cert cert = new_cert(key.get(), name);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(cert.get()));
  add_extension(cert.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(cert.get(), key.get(), EVP_sha256());
  return pems(cert.get(), key.get());
}

TestPair make_test_cert(const TestPair& ca, const std::string& dns_name) {
  const std::unique_ptr<BIO, Free> cert_bio(BIO_new_mem_buf(ca.cert_pem.data(), static_cast<int>(ca.cert_pem.size())));
  const std::unique_ptr<BIO, Free> key_bio(BIO_new_mem_buf(ca.key_pem.data(), static_cast<int>(ca.key_pem.size())));
  const Cert issuer(PEM_read_bio_X509(cert_bio.get(), nullptr, nullptr, nullptr));
  const Key issuer_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  const Key key(EVP_EC_gen("P-256"));
  const Cert cert = new_cert(key.get(), dns_name);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(issuer.get()));
  add_extension(cert.get(), NID_subject_alt_name, ("DNS:" + dns_name + ",IP:127.0.0.1").c_str());
  X509_sign(cert.get(), issuer_key.get(), EVP_sha256());
  return pems(cert.get(), key.get());
}

TEST(TlsTestFiles, AreReadablePem) {
  const TestPair ca = make_test_ca("ca");
  EXPECT_TRUE(make_test_cert(ca, "server").cert_pem.starts_with("-----BEGIN CERTIFICATE-----"));
}

}  // namespace berth::io
