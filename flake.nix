# ava for Nix: `nix build`, `nix run . -- version`, `nix develop`. The page is in it where web/dist was
# made before (./dev build; `nix build path:.`, since git does not know that folder). avad takes the
# bwrap of /usr/bin: on NixOS, which has none there, commands of subagents have no sandbox.
{
  description = "ava, a runtime for background subagents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-24.11";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.stdenv.mkDerivation {
          pname = "ava";
          version = "0.1.0";
          src = self;
          nativeBuildInputs = with pkgs; [ meson ninja pkg-config python3 ];
          buildInputs = with pkgs; [
            curl jansson libbsd libedit libmd libmicrohttpd libsodium libuv libxml2 libyaml md4c
            mimalloc ncurses nettle pcre2 sqlite
            # ava-sandbox is a static program
            glibc.static pkgsStatic.libseccomp
          ];
          postPatch = "patchShebangs script src/gateway/embed.py";
          mesonFlags = [ "-Dtests=false" "-Darchives=false" ];
          # md4c is opened by name, where a text is shown.
          postFixup = "patchelf --add-rpath ${pkgs.md4c.lib or pkgs.md4c}/lib $out/bin/ava";
          meta = {
            description = "Background subagents: durable, limited, watched";
            license = pkgs.lib.licenses.mit;
            mainProgram = "ava";
          };
        };
      });

      devShells = each (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ self.packages.${pkgs.stdenv.hostPlatform.system}.default ];
          packages = with pkgs; [ clang-tools cmocka jq ];
        };
      });
    };
}
